"""What ranks give unlike in a halo exchange: all raise, and the error names it."""

from __future__ import annotations

import pytest
from halo_domain import DOMAIN
from rank_jobs import NO_PLAN, run, runtime_folder

__all__ = ["runtime_folder"]

ATTEMPT = (
    DOMAIN
    + """
group = ww.join()
odd = group.rank == 1
def attempt(call):
    try: call()
    except ww.Error as error: print(type(error).__name__, error)
def grid(shape=(12, 9), **more):
    return ww.GridPartition(group, shape, **{"parts": (2, 1), **more})
def halo(of=None, *fields):
    of = of or grid()
    return ww.HaloExchange(group, of, fields or [np.zeros(of.local_shape)])
"""
)


def both(*said: str) -> list[str]:
    return sorted([*said] * 2)


@pytest.mark.parametrize(
    ("unlike", "what"),
    [
        ("(12 + odd, 9)", "shape of the whole grid"),
        ("(12, 9), ghost=1 + odd", "width of ghosts"),
        ("(12, 9), ghost=(1, 1 + odd)", "width of ghosts"),
        ("(12, 9), periodic=(odd, False)", "choice of periodic dimensions"),
        ("(12, 9), parts=(1, 2) if odd else (2, 1)", "list of all ranks' boxes"),
    ],
)
def test_unlike_grids(unlike: str, what: str) -> None:
    code = f"""
    attempt(lambda: halo(grid({unlike})))
    halo().exchange()
    """
    assert run(2, code, program=ATTEMPT) == (0, both(f"InputError rank 1 has another {what} than rank 0"), "")


def test_unlike_fields() -> None:
    code = """
    same = np.zeros(grid().local_shape)
    attempt(lambda: halo(grid(), same, *([np.zeros(same.shape)] if odd else [])))
    attempt(lambda: halo(grid(), same, np.zeros(same.shape, np.float32 if odd else np.float64)))
    attempt(lambda: halo(grid(), same, np.zeros((*same.shape, 2 + odd))))
    attempt(lambda: halo(grid(), ww.ComponentsFirst(np.zeros((2, *same.shape))) if odd else np.zeros((*same.shape, 2))))
    attempt(lambda: halo(grid(), same, np.zeros((3, 3)) if odd else np.zeros(same.shape)))
    attempt(lambda: halo(grid(), same, np.zeros((8, 22))[:, ::2] if odd else np.zeros(same.shape)))
    attempt(lambda: halo(grid(), "field" if odd else same))
    made = halo(grid(), same)
    attempt(lambda: made.add(np.zeros((3, 3)) if odd else np.zeros(same.shape)))
    made.exchange()
    group.barrier()
    """
    array = "an array was expected,"
    assert run(2, code, program=ATTEMPT) == (
        0,
        both(
            "InputError rank 1 has another number of fields in a halo exchange than rank 0",
            "InputError rank 1 has another type of field 1 in a halo exchange than rank 0",
            "InputError rank 1 has another number of components of field 1 in a halo exchange than rank 0",
            "InputError rank 1 has another place of the components of field 0 in a halo exchange than rank 0",
            *["InputError rank 1: a field of shape (3, 3): (8, 11) was expected, or that with components last"] * 2,
            f"InputError rank 1: {array} 'ndarray' is not contiguous (C order)",
            f"InputError rank 1: {array} 'str' is no array: give it a buffer, DLPack or __cuda_array_interface__",
        ),
        "",
    )


def test_unlike_variants() -> None:
    code = """
    of = grid(periodic=True)
    wanted = taken(whole(of, 1), of)
    field = owned_only(wanted, of)
    made = halo(of, field)
    def use(*given):
        attempt(lambda: made.use(given[odd]))
        field[:] = owned_only(wanted, of)
        made.exchange()
        assert (field == wanted).all() and made.variant == "packed"
    use("whole_field", "packed")
    use("packed", "whole_field")
    use("packed", ["packed"] * len(made.sides))
    use("packed", "best")
    use({1: "packed"}, {5: "packed"})
    use(["packed"] * len(made.sides), ["best"])
    """
    names = "whole_field, per_neighbor, packed, direct, strided, gpu_aware"
    use = "InputError use() of a halo exchange: rank 1 gives"
    assert run(2, code, program=ATTEMPT) == (
        0,
        both(
            f"{use} packed, rank 0 whole_field",
            f"{use} whole_field, rank 0 packed",
            f"{use} a list, rank 0 packed",
            f"InputError rank 1: best: is no variant of a halo exchange: {names}",
            f"InputError rank 1: best: is no variant of a halo exchange: {names}",
            "InputError rank 1: use: rank 5 is no neighbour that is given cells",
        ),
        "",
    )


def test_ranks_of_gpus_without_elements_have_the_variants_of_gpus() -> None:
    code = """
    gpus = ww.virtual_gpus(3)
    group = ww.join(gpus=gpus)
    of = ww.GridPartition(group, (1, 6), ghost=0, parts=(3, 1))
    made = ww.HaloExchange(group, of, [gpus.array(np.zeros(of.local_shape), group.rank)])
    for variant in ("gpu_aware", "strided", "packed", "direct"):
        try: made.use(variant); made.exchange()
        except ww.UnavailableError as error: print(variant, error)
    group.barrier()
    """
    said = "direct a schedule on arrays of GPUs: rank 1 has no array of a GPU"
    ended, lines, errors = run(3, code, program=DOMAIN)
    assert (ended, lines) == (0, [said] * 3) and errors in ("", NO_PLAN), errors
