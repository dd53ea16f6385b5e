"""The text of docs/faults.md: the rows of each matrix, the results in its cells, reasons for cells without a test."""

from __future__ import annotations

from dataclasses import dataclass

NOT_TESTED = "u"


@dataclass
class Row:
    """The cells, in the order of the columns: letters of Section.seen or of Section.reasons."""

    call: str
    mode: str
    cells: str


@dataclass
class Section:
    """A matrix. `key` names it in tests and in the page; `note` stands below it."""

    key: str
    rows: list[Row]
    seen: dict[str, str]
    reasons: dict[str, str]
    note: str = ""


HOST = Section(
    key="host",
    rows=[
        Row("barrier", "blocking", "D S L W s M R I,H"),
        Row("all_reduce", "blocking", "D S L W s M R I,H"),
        Row("reduce", "blocking", "D S L W s M R I,H"),
        Row("broadcast", "blocking", "D S L W s M R I,H"),
        Row("all_gather", "blocking", "D S L W s M R I,H"),
        Row("gather", "blocking", "D S L W s M R I,H"),
        Row("scatter", "blocking", "D S L W s M R I,H"),
        Row("reduce_scatter", "blocking", "D S L W s M R I,H"),
        Row("all_to_all", "blocking", "D S L W s M R I,H"),
        Row("all_to_all_v", "blocking", "D S L W s M R I,H"),
        Row("scan", "blocking", "D S L W s M R I,H"),
        Row("exscan", "blocking", "D S L W s M R I,H"),
        Row("neighbor_exchange", "blocking", "D S L W s M R I,H"),
        Row("prepare_exchange, start and wait", "blocking", "D S L W s M R I,H"),
        Row("prepare_collective, start and wait", "blocking", "D S L W s M R I,H"),
        Row("split", "blocking", "D S L W s M R I,H"),
        Row("send", "blocking", "D S L W s M R I,H"),
        Row("recv", "blocking", "D S L W s M R I,H"),
        Row("short recv", "blocking", "D S L W s M R I,H"),
        Row("recv from any rank", "blocking", "D S L W s M R I,H"),
        Row("probe, then recv", "blocking", "D S L W s M R I,H"),
        Row("sendrecv", "blocking", "D S L W s M R I,H"),
        Row("expose", "blocking", "D S L W s M R I,H"),
        Row("put, flush, signal and wait", "blocking", "D S L w s M R I,H"),
        Row("get", "blocking", "D S L w s M R I,H"),
        Row("barrier", "started", "D S L b s b R I"),
        Row("all_reduce", "started", "D S L b s b R I"),
        Row("reduce", "started", "D S L b s b R I"),
        Row("broadcast", "started", "D S L b s b R I"),
        Row("all_gather", "started", "D S L b s b R I"),
        Row("gather", "started", "D S L b s b R I"),
        Row("scatter", "started", "D S L b s b R I"),
        Row("reduce_scatter", "started", "D S L b s b R I"),
        Row("all_to_all", "started", "D S L b s b R I"),
        Row("scan", "started", "D S L b s b R I"),
        Row("exscan", "started", "D S L b s b R I"),
        Row("send", "started", "D S L b s b R I"),
        Row("recv", "started", "D S L b s b R I"),
        Row("recv from any rank", "started", "D S L b s b R I"),
    ],
    seen={
        "D": "the others raise as soon as the kernel knows: `rank 1 (process 4711 on host) is gone: it has ended`",
        "S": (
            "after the timeout all raise what was waited for: `rank 0: waited 3.00 s in recv #1 of 100 float64 "
            "from rank 1: 0 of 800 bytes arrived`"
        ),
        "L": "nothing: the result is right",
        "W": (
            "all raise both calls: `rank 0 is in gather #2 of 60000 float64, root 0, but rank 1 is in barrier "
            "#2`, `rank 0 sent 480000 bytes where 240000 were expected`"
        ),
        "M": (
            "what cannot be made is an exception there (`MemoryError`), and at the others `rank 1: MemoryError: "
            "...`; a call that makes nothing goes on"
        ),
        "R": "the others raise its words: `rank 1: ValueError: a bug of the user`",
        "I": (
            "`KeyboardInterrupt` there; the others raise `rank 1: interrupted in barrier #2`, but who has got "
            "all it needs of a call has missed nothing"
        ),
        "H": "nothing: the handler runs, the result is right",
    },
    reasons={
        "s": "it is the same for all calls: [strangers](#strangers)",
        "b": "the call is the same as the blocking one from its first turn on",
        "w": "one-sided calls have no partner that could call something else",
    },
    note=(
        '"blocking" is the call itself, "started" one that only begins (`start_...()`; in C++ `Mode::begin`) and its '
        "`wait()`; a `split` sends messages within. A `put`, `get` or `signal` may find\n"
        "that a rank's memory is no longer there before it hears why: "
        "`UCX cannot put #1 of 800 uint8 to rank 1: Input/output error`."
    ),
)

FORMING = Section(
    key="forming",
    rows=[
        Row("join", "blocking", "D S L W X M D J"),
        Row("close", "blocking", "D Q L c s u R,E I"),
    ],
    seen={
        "D": (
            "all raise which rank has ended before the group had formed; who dies while the others close, having "
            "got all of it, is no error"
        ),
        "S": "after the timeout the ranks that have not come are named",
        "L": "it is waited for",
        "W": "what differs, such as size, plan or version, is named everywhere",
        "X": (
            "strangers neither stop nor delay it; a wrong secret is refused and named, and a root without it not "
            "believed"
        ),
        "M": "an error there, that of the library that found no memory; the others name the rank at the timeout",
        "R": "the job ends with its words and its exit code",
        "E": "a code that `main` returns or `exit` gets: the others raise it at once, and the launcher ends with it",
        "J": "an interrupt ends `join` there",
        "Q": "it is waited for, until it goes on or an interrupt ends that",
        "I": "the launcher ends all ranks",
    },
    reasons={
        "c": "`close` has no arguments, and a rank that calls anything else then is one that has left",
        "s": "it is the same for all calls: [strangers](#strangers)",
    },
)

STRANGERS = Section(
    key="strangers",
    rows=[
        Row("every call", "within a machine", "K P n n X n n n"),
        Row("every call", "between machines", "C C n n X,F,B,Y n n n"),
    ],
    seen={
        "X": (
            "a job within a machine listens on no network; a folder that others may write is refused or passed "
            "by; memory is shared with this user only"
        ),
        "F": (
            "a flood of connections neither stops ranks nor delays the root's deadline; malformed frames are "
            "refused before their bytes come; what follows the proofs is sealed"
        ),
        "B": (
            "a stranger's bytes never become data: the result is right, or an error that names the rank, with "
            "the probable cause where UCX ends the process"
        ),
        "Y": (
            "what was recorded of a meeting is refused when it is played back to the same job or another, and so "
            "are orders between machines that are measured"
        ),
        "K": "nothing of a job that was killed stays, and what does is passed by",
        "P": "a root of another job that was stopped is left for its successor",
        "C": "a machine or a link that is lost is an error on both sides",
    },
    reasons={
        "n": "as for arrays of the host",
    },
)

GPUS = Section(
    key="gpus",
    rows=[
        Row("collectives", "on a stream", "D T L W h M R I,H"),
        Row("collectives", "started", "D T L W h M R I,H"),
        Row("collectives, hosts between machines", "on a stream", "O O L O h M R I,H"),
        Row("collectives", "in a graph", "D T g g h g h g"),
        Row("collectives", "back end of PyTorch", "D T L W h p h p"),
        Row("collectives and messages", 'on a stream, `on_failure="raise"`', "V V L V h M R I,H"),
        Row("the last operation of a program", "on a stream", "E T L g h M R I,H"),
        Row("messages to other machines", "on a stream", "O O L o h M,K R I,H"),
        Row("messages", "on a stream", "D N L P h M R I,H"),
        Row("messages", "blocking", "G G L P h M R I,H"),
        Row("windows", "blocking", "G G L w h M R I,H"),
    ],
    seen={
        "D": "known within a second: a line that names rank, peer and call, and every later CUDA call raises",
        "T": (
            "at the timeout a line names rank, peer and call, the kernel traps, and every later CUDA call "
            "raises; the output is as it was"
        ),
        "O": "as D, T and W: the kernel in which the stream waits for the hosts traps",
        "E": "as for the others: `close`, `destroy_process_group` and the end of the program wait for it",
        "L": "nothing: the result is right",
        "W": (
            "each rank's error names both calls, before any rank has a result; above 8 ranks, where NCCL has no "
            "kernel of a group beside it, by their hosts (tested without NCCL)"
        ),
        "P": "the two lengths; nothing of the message is taken",
        "M": (
            "a new array that the GPU has no room for is a `DeviceError` there, and the others raise `rank 1: "
            "DeviceError: ...`; a call that makes no array goes on"
        ),
        "K": "without host memory the call raises before the stream reads an array; the next call goes on",
        "R": "the others raise its words: `rank 1: ValueError: a bug of the user`",
        "I": (
            "`KeyboardInterrupt` there, also while it waits for its stream or closes the group; the others raise "
            "`rank 1: interrupted in ...`"
        ),
        "H": "nothing: the handler runs, the result is right",
        "G": "as for arrays of the host; nobody touches the arrays of a call that has ended",
        "N": "what nobody sends traps at the deadline",
        "V": (
            "the same line; the GPU goes on, each output of the call and of later ones is NaN, or has all bits set, "
            "and every later call of the group raises"
        ),
    },
    reasons={
        "g": "a graph replays what was called on a stream, and makes no array",
        "p": "it calls the group in PyTorch's stream, and makes no array; PyTorch itself waits for the stream",
        "h": "the host's part of the call is that of arrays of the host",
        "o": "the host's part is that of the other calls whose streams wait for hosts",
        "w": "one-sided calls have no partner that could call something else",
    },
    note=('"stopped" is a rank that is not there at the deadline, whatever keeps it.'),
)

SECTIONS = [HOST, FORMING, STRANGERS, GPUS]
