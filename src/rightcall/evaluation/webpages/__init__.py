"""Pages of HTML that can be mailed: one file that loads nothing, with a headline, tables, bars and samples.

`page_parts` are the values that a page is made of, `page_writing` makes the HTML. Whoever has something to say decides
what a page says; how it looks is decided here, once for all.
"""
