"""How units come to be exercised: given, recorded and guessed examples, and the further calls that their rewrite can take."""
