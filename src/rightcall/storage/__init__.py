"""Write files durably. An existing file is replaced only by a file of the same kind.

file_kinds.py   recognise the kind of a file by its beginning; refuse to replace a foreign file
draft.py        a new file beside the old one, renamed when it is complete and on disk
whole_files.py  a file, or several together, that appear complete or not at all
parted_file.py  a file that is written part by part, can be resumed, and appears when it is complete
journal.py      a file to which lines are appended, each complete or not at all
jsonl.py        JSON lines: encode and decode a row, read a file line by line
own_formats.py  find and register the formats of the user
streams.py      devices and file descriptors as outputs
"""
