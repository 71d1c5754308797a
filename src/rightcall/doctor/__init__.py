"""`rightcall doctor`: examine a model server with the requests of real clients, and diagnose what is wrong.

`examination` sends the `questions`, `server_answers` parses the answers, and the `judges` decide about each answer. The
table of `probes` names the judge for each question. `diagnosis` holds the results, by `failure_classes`.
"""
