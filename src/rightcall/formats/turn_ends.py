"""The tokens with which most models end a turn, for formats that any model may write."""

from rightcall.formats.spec import Special

TURN_ENDS = (
    Special("<|im_end|>"),
    Special("<|endoftext|>"),
    Special("</s>"),
    Special("<|eot_id|>"),
    Special("<|eom_id|>"),
    Special("<|eot|>"),
    Special("<|eom|>"),
    Special("<|end_of_text|>"),
    Special("<end_of_turn>"),
    Special("<eos>"),
    Special("<|end|>"),
    Special("<|eos|>"),
    Special("<｜end▁of▁sentence｜>"),
    Special("<|END_OF_TURN_TOKEN|>"),
    Special("<|endofturn|>"),
    Special("<|role_end|>"),
)
# How the next message of the assistant begins where messages are ChatML.
CHATML_HEADER = Special("<|im_start|>") + "assistant\n"
# What servers leave at the end of an answer: how a turn ends, and how the next one begins, in any model. A
# format is written by models of other families than its own, whose tokens it does not know.
LAST_TOKENS = (
    *TURN_ENDS,
    Special("<|assistant|>"),
    Special("<|observation|>"),
    Special("<|user|>"),
    Special("<｜Assistant｜>"),
    Special("<|END_RESPONSE|>"),
    Special("<|END_TEXT|>"),
    Special("<|im_start|>assistant"),
    Special("<|start_header_id|>assistant<|end_header_id|>"),
)
