"""Small valid files of every format."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from reference.tfrecord import example, record

SVMLIGHT = b"1 1:0.5 3:2 # a comment\n-1 2:1e-3 7:-4.25\n\n+1 qid:3 1:1 2:1\n0 10:3.0000000000000001 12:1e-40\n"
LIBFM = b"4.5 0:1 3:1\n1 1:0.5 2:-1\n3.25 0:1\n"
CSV = b'label,age,kind,weight\nyes,3,cat,4.5\nno,,"dog, big",0\nyes,1,"a ""cat""\nagain",1e1\nno,2,,-2\n'
TSV = b"y\tsize\ttown\tprice\n1\t2\tUlm\t0.5\n0\t3\tBonn\t1e3\n1\t\tUlm\t-7\n"
SEMICOLONS = b"1;2.5;red\n0;3;blue\n1;-1;red\n"
TEXT = "good\ta fine film, isn't it?\nbad\tdull and long\ngood\tgrößer als zwölf\n".encode()
MULTISLOT = b"1 1 2 5 7 3 0.5 1.25 -2 2 0.5 1\n1 0 1 18446744073709551615 3 1 2 3 1 1e-3\n\n1 1 0 3 0 0 1e-20 0\n"
SLOTS = b"""[[slot]]
name = "click"
type = "uint64"
label = true

[[slot]]
name = "ad"
type = "uint64"
values = "bid"

[[slot]]
name = "I"
type = "float"
dense = true
# as wide as in the first row

[[slot]]
name = "bid"
type = "float"
used = true
"""
DESCRIPTION = b"""name: "MultiSlotDataFeed"
batch_size: 32
multi_slot_desc {
  slots { name: "click" type: "uint64" is_dense: false is_used: true }
  slots { name: "ad" type: 'uint64' is_dense: false is_used: true }
  slots { name: "I" type: "float" is_dense: true is_used: true shape: [-1, 3] }
  slots { name: "bid" type: "float" is_used: false }
}
"""
CRITEO = b"".join(
    b"\t".join([label, *(b"%d" % (k * k - 3) for k in range(12)), b"", *(b"%08x" % (k * 7919) for k in range(25)), b""])
    + b"\n"
    for label in (b"1", b"0")
)
LIBFFM = b"1 0:3:0.5 1:7:1 2:12:-2\n0 1:7:1 0:4:1e-3\n1 5:100:1\n"
CONLL = "to TO B-VP\nbe VB I-VP\n\n-DOCSTART- -X- O\n\nor CC O\nnot RB O\nZürich NNP B-NP\n".encode()
CONLLU = "".join(
    [
        "# sent_id = 1\n",
        "1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n",
        "1\tde\tde\tADP\tP\t_\t2\tcase\t_\t_\n",
        "2\tle\tle\tDET\tD\tGender=Masc\t0\troot\t_\t_\n",
        "2.1\tx\tx\tX\tX\t_\t_\t_\t_\t_\n",
        "\n1\tfin\tfin\tNOUN\tN\t_\t0\troot\t_\tSpaceAfter=No\n\n",
    ]
).encode()
SEGMENTED = "我 喜欢 北京\n今天 天气 很 好\n\nab c\n".encode()
JSONL = b"""{"tokens": ["to", "be"], "tags": ["A", "B"], "pos": ["x", "y"]}
{"tokens": ["or"], "tags": ["O"], "pos": ["z"]}
"""
OBJECTS = b"""{"label": "yes", "age": 31, "site": "a.org", "note": "so \\u00fc"}
{"label": "no", "site": null, "age": 4.5e1, "more": [1, {"a": []}]}

{"age": -2, "label": "no", "site": "b"}
"""
OBJECT_LABELS = b"""{"labels": ["red", "round"], "text": "a ruby ball"}
{"labels": [], "text": "the {sky}"}
{"text": "", "labels": ["red"]}
"""
FASTTEXT = "__label__pos __label__short a fine film\n\nso __label__neg dull\n__label__pos größer\n".encode()
OBJECT_RATINGS = b"""{"user": "ann", "item": 5, "rating": 4}
{"user": "bob", "item": 7, "rating": 2.5}
"""
RATINGS = b"userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n1,1029,3.0,1260759179\n2,31,4,1260759182\n"
COLONS = b"1::1193::5::978300760\n1::661::3::978302109\n2::1193::4::978298413\n"
LISTS = b"ann tea jam\nbob tea\n\ncarl jam milk bread honey butter\n"
CORPUS = "the cat sat on the mat\nthe dog sat\n\n  größer   the\tcat \nnew york new york\n".encode()
WORDS = [{"town": [b"Ulm"], "click": [1], "ads": [5, 2**63 + 1], "I": [1.0, 2.0]},
         {"town": [b"Bonn", b"Ulm"], "click": [0], "ads": [5], "I": [3.0, -4.0]}]  # fmt: skip
NONZERO = [{"label": [1], "nz_idx": [4, 7], "nz_values": [0.5, 2.0]}, {"label": [0], "nz_idx": [0], "nz_values": [1.5]}]
EXAMPLE_SLOTS = b"""[[slot]]
name = "town"
type = "string"

[[slot]]
name = "click"
type = "uint64"
label = true

[[slot]]
name = "ads"
type = "uint64"

[[slot]]
name = "I"
type = "float"
dense = true
"""

PETS = {
    "label": pa.array(["yes", "no", "yes", "no"]),
    "age": pa.array([3, None, 1, 2], pa.int16()),
    "kind": pa.array(["cat", "dog", "cat", None]).dictionary_encode(),
    "weight": pa.array([4.5, 0, 10, -2], pa.float32()),
    "flag": pa.array([True, False, None, True]),
    "name": pa.array(["a", "", "größer", None], pa.large_string()),
}
ROWS = {"label": [1, 0, 1], "nz_idx": [[4, 7], [], [0]], "nz_values": [[0.5, 2.0], None, [1.5]]}
VOTES = {"user": ["ann", "bob", "bob"], "item": [7, 7, 9], "rating": [5.0, 3.0, None]}


def examples(rows: list[dict[str, list[int] | list[float] | list[bytes]]]) -> bytes:
    """A TFRecord file."""
    return b"".join(record(example(row)) for row in rows)


def parquet(columns: dict[str, object], compression: str = "snappy") -> bytes:
    """A Parquet file of two row groups."""
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), sink, row_group_size=2, compression=compression)
    return sink.getvalue()


def bare_parquet(columns: dict[str, object]) -> bytes:
    """A Parquet file that is hardly more than its values: as little as can be is compressed or described."""
    sink = io.BytesIO()
    table = pa.table({name: pa.concat_arrays([pa.array(column)] * 20) for name, column in columns.items()})
    pyarrow.parquet.write_table(table, sink, compression="none", store_schema=False,
                                write_statistics=False, use_dictionary=False)  # fmt: skip
    return sink.getvalue()


def arrow_stream(columns: dict[str, object], compression: str | None = None) -> bytes:
    """An Arrow stream of batches of two rows."""
    return _ipc(pa.ipc.new_stream, columns, compression)


def arrow_file(columns: dict[str, object], compression: str | None = None) -> bytes:
    """An Arrow file of batches of two rows."""
    return _ipc(pa.ipc.new_file, columns, compression)


def _ipc(make: object, columns: dict[str, object], compression: str | None) -> bytes:
    table, sink = pa.table(columns), io.BytesIO()
    with make(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:  # type: ignore[operator]
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


def feather(columns: dict[str, object], version: int = 2) -> bytes:
    """A Feather file."""
    sink = io.BytesIO()
    pyarrow.feather.write_feather(pa.table(columns), sink, compression="lz4" if version == 2 else None)
    return sink.getvalue()


def compressed(data: bytes) -> dict[str, bytes]:
    """The same svmlight lines in every compression."""
    return {
        "a.svm.gz": gzip.compress(data, mtime=0),
        "a.svm.xz": lzma.compress(data),
        "a.svm.bz2": bz2.compress(data),
        "a.svm.zst": pa.compress(data, "zstd", asbytes=True),
    }
