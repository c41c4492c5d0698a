"""Feature templates that are ready made. They are plain text, as in a file of templates."""

from __future__ import annotations

YES = "1"  # the value of a test that holds; one that does not gives no feature

PRESETS = {
    "chunking": """\
# Words and parts of speech in a window of two, pairs of words, pairs and triples of parts of speech.
w[-2]
w[-1]
w[0]
w[1]
w[2]
pos[-2]
pos[-1]
pos[0]
pos[1]
pos[2]
w[-1]|w[0]
w[0]|w[1]
pos[-2]|pos[-1]
pos[-1]|pos[0]
pos[0]|pos[1]
pos[1]|pos[2]
pos[-2]|pos[-1]|pos[0]
pos[-1]|pos[0]|pos[1]
pos[0]|pos[1]|pos[2]
""",
    "chunking-more": """\
# As chunking; words with parts of speech, words in lower case, beginnings and endings.
@include chunking
w[0]|pos[0]
w[-1]|pos[0]
w[0]|pos[1]
w[0]|pos[-1]
w[1]|pos[0]
lower(w)[-1]
lower(w)[0]
lower(w)[1]
prefix(w,2)[0]
prefix(w,3)[0]
prefix(w,4)[0]
suffix(w,2)[0]
suffix(w,3)[0]
suffix(w,4)[0]
""",
    "pos": """\
# Words in a window of two, pairs of words; beginnings, endings and shape of the word itself.
w[-2]
w[-1]
w[0]
w[1]
w[2]
w[-1]|w[0]
w[0]|w[1]
lower(w)[0]
prefix(lower(w),1)[0]
prefix(lower(w),2)[0]
prefix(lower(w),3)[0]
prefix(lower(w),4)[0]
suffix(lower(w),1)[0]
suffix(lower(w),2)[0]
suffix(lower(w),3)[0]
suffix(lower(w),4)[0]
shape(w)[0]
hasdigit(w)[0]
hashyphen(w)[0]
hasupper(w)[0]
""",
    "segmentation": """\
# Characters in a window of two, their pairs and triples, repetition, and classes of characters.
w[-2]
w[-1]
w[0]
w[1]
w[2]
w[-2]|w[-1]
w[-1]|w[0]
w[0]|w[1]
w[1]|w[2]
w[-1]|w[1]
w[-1]|w[0]|w[1]
same(w)[0,-1]
same(w)[0,-2]
class(w)[0]
class(w)[-1]|class(w)[0]|class(w)[1]
""",
}
