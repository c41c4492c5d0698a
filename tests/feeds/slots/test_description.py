"""Descriptions of slots: TOML, the data-feed description of the async executor, and what can be wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hogwild.errors import ConfigError, InputError
from hogwild.feeds.slots.description import Slot, SlotPlan, known_plan, parse_slots, read_slots

TOML = """
[[slot]]
name = "I"
type = "float"
dense = true
width = 2
[[slot]]
name = "C"
type = "uint64"
repeat = 3
[[slot]]
name = "query"
type = "uint64"
values = "weights"
[[slot]]
name = "weights"
type = "float"
[[slot]]
name = "session"
type = "uint64"
used = false
[[slot]]
name = "clicked"
type = "uint64"
label = true
"""

PROTO = """
name: "MultiSlotDataFeed"  # as of old
batch_size: 128
multi_slot_desc {
  slots { name: "words" type: "uint64" is_dense: false is_used: true }
  slots <name: 'dense' , type: "float" is_dense: true is_used: true shape: [-1, 13]>
  slots: { name: "left \\"out\\"" type: "float" }
  slots { name: "label" type: "uint64" is_dense: true is_used: true shape: -1 shape: 1 }
}
pipe_command: "rm -rf /"
"""


def test_toml() -> None:
    plan = parse_slots(TOML, "a.toml")
    assert plan.names == ("C1", "C2", "C3", "query")
    assert plan.columns == ("I1", "I2")
    assert plan.label == Slot("clicked", label="binary")
    assert [slot.name for slot in plan.slots if not slot.used] == ["session"]
    assert plan.slots[4] == Slot("query", values="weights")
    assert plan.notes == ()


def test_the_data_feed_description() -> None:
    plan = parse_slots(PROTO, "feed.prototxt")
    assert plan.slots == (
        Slot("words"),
        Slot("dense", "float", dense=True, width=13),
        Slot('left "out"', "float", used=False),
        Slot("label", dense=True, width=1, label="binary"),
    )
    assert plan.names == ("words",)
    assert len(plan.columns) == 13
    assert plan.notes == (
        "feed.prototxt has a pipe_command, which is not run; give it with --pipe.",
        "feed.prototxt has batch_size: 128, which is not followed; flags say how to train.",
    )


def test_schemas_give_the_same_plan() -> None:
    plan = parse_slots(TOML, "a.toml")
    assert known_plan(plan.schema()) == plan
    for broken in ([{"name": 1}], [{"nam": "x"}], [{"name": "x", "width": "3"}], [{"name": "a"}, {"name": "a"}]):
        with pytest.raises((TypeError, ValueError)):
            known_plan(broken)


def slots(*names: str) -> str:
    return "".join(f'[[slot]]\nname = "{name}"\ntype = "uint64"\n' for name in names)


def test_which_slot_is_the_label() -> None:
    assert parse_slots(slots("ad", "Label"), "a").label.name == "Label"
    assert parse_slots(slots("click", "ad"), "a").label.name == "click"
    assert parse_slots(slots("ad", "bought"), "a", label="bought").label == Slot("bought", label="binary")
    other = parse_slots(TOML, "a", label="session")
    assert (other.label.name, other.label.used) == ("session", True)
    assert "clicked" in other.names
    number = parse_slots(slots("ad") + '[[slot]]\nname="y"\ntype="float"\nlabel="number"\n', "a")
    assert number.label == Slot("y", "float", label="number")
    assert parse_slots(slots("ad") + '[[slot]]\nname="y"\ntype="float"\nlabel="number"\n', "a", label="y") == number


def test_slots_that_are_ignored() -> None:
    assert parse_slots(TOML, "a", ignore=["C2", "I"]).names == ("C1", "C3", "query")
    assert parse_slots(TOML, "a", ignore=["I"]).columns == ()


WRONG = [
    ("", "a: no slots; write"),
    ("x = 3", "a: unknown key 'x'"),
    ("[[slot]", r"a: not valid TOML: .*line 1"),
    ("slot = 3", "a: no slots"),
    ('[[slot]]\ntype = "uint64"', "a: slot 1 has no name"),
    ('[[slot]]\nname = "x"', r"a: slot 1 \(`x`\): the type is None; choose one of uint64, float, string"),
    ('[[slot]]\nname = "x"\ntype = "int"', "the type is 'int'"),
    (slots("y") + 'widht = 3', "unknown key 'widht' .did you mean width"),
    (slots("y") + "width = -1", "width is -1; it must be a whole number from 0"),
    (slots("y") + "width = true", "width is True"),
    (slots("y") + "repeat = 0", "repeat is 0; it must be a whole number from 1"),
    (slots("y") + "dense = 1", "dense is 1; write true or false"),
    (slots("y") + "label = 1", "label is 1; write true"),
    (slots("y") + "label = [1]", r"label is \[1\]; write true"),
    (slots("y") + "values = 1", "values is 1; write the name"),
    (slots("a", "b"), "no slot is the label"),
    (slots("y", "y"), "two slots are named `y`"),
    (slots("y") + "label = true\n" + slots("z") + "label = true\n", r"2 slots are labels \(y, z\)"),
    (slots("y"), "no slot is left for features beside the label `y`"),
    (slots("y", "x") + 'values = "w"', "`w` cannot hold the values of slot `x`"),
    (slots("y", "x", "w") + 'values = "x"', "`x` cannot hold the values of slot `w`"),
    (slots("y") + '[[slot]]\nname = "x"\ntype = "float"', "slot `x` holds floats; write dense = true"),
    (slots("y") + '[[slot]]\nname = "x"\ntype = "string"\ndense = true', "slot `x` holds words"),
    ("multi_slot_desc {\n slots { name: \"x\"\n", "a:3:1: expected a field or `}`, not the end"),
    ("name: 7", "a:1:7: name must be a text in quotes, not `7`"),
    ("name: \"x\" }", "a:1:11: expected a field, not `}`"),
    ("nam: \"x\"", "a:1:1: unknown field `nam`; fields here are name"),
    ("name: \"x\nbatch_size: 1", "a:1:7: not protobuf text: unexpected `\"`"),
    ("batch_size: 1 batch_size: 2", "`batch_size` is given twice"),
    ("multi_slot_desc {\n slots { name: \"x\" is_used: so } }", "a:2:29: is_used must be true or false, not `so`"),
    ("multi_slot_desc {\n slots { name: \"x\" } }", "a:2: a slot without type"),
    ("multi_slot_desc {\n slots { name: \"x\" type: \"int8\" } }", "a:2: slot `x` is of type `int8`"),
    ("multi_slot_desc { slots { name: \"x\" type: \"float\" } }", "a: no slot is used; write is_used: true"),
    ("multi_slot_desc { }", "a: no slots; write multi_slot_desc"),
    ("multi_slot_desc { slots { name: \"x\" shape: [3 } }", "a:1:47: shape must be a whole number, not `}`"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_slots(text, "a")


def test_options_that_name_no_slot() -> None:
    ignored = r"there is no slot `weight` \(--ignore\) .did you mean weights.*the slots are I, C1"
    with pytest.raises(ConfigError, match=ignored):
        parse_slots(TOML, "a", ignore=["weight"])
    with pytest.raises(ConfigError, match=r"there is no slot `click` \(--label\) .did you mean clicked"):
        parse_slots(TOML, "a", label="click")


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "slots.toml"
    with pytest.raises(ConfigError, match="No such file"):
        read_slots(str(path))
    path.write_bytes(b"\xef\xbb\xbf" + TOML.encode())
    assert isinstance(read_slots(str(path)), SlotPlan)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        read_slots(str(path))


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 5000, "{a=" * 5000])
def test_toml_that_its_parser_cannot_hold(value: str) -> None:
    with pytest.raises(InputError, match=r"^a\.toml: not valid TOML: .{1,201}$"):
        parse_slots(f"[[slot]]\nname = {value}\n", "a.toml")
