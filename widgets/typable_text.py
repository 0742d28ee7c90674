"""What can be typed at a keyboard."""

# Control characters and lone surrogates cannot be typed and would reach the terminal.
TYPABLE = r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]*"
