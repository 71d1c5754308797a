"""Files that are written: what is at a place may be written over only if it is of the kind that is written there.

kinds.py    what a file is, told by how it begins; what is somebody else's is refused
draft.py    a new file beside an old one, moved into its place when it is whole and on disk
output.py   a file, or several together, that appear whole or not at all
parted_file.py  a file that grows part by part, can be gone on with, and appears when it is whole
journal.py  a file that lines are appended to, each whole or not at all
lines.py    JSON lines: one row as bytes and back, and whole files read a line at a time
"""
