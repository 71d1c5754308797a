"""The proxy: any client's dialect in front, any server's behind, and in between only calls that may be trusted.

    client's body -> request_readers/ -> ClientRequest -> backends (body, modes) -> server
    client's bytes <- answer_writers/ <- events <- apis (Stream) <- server

One request reader and one answer writer for each dialect; none knows another.
"""
