from pathlib import Path

from spack.package import *


class Waywiser(PythonPackage):
    """Measures every path between two memories and chooses the fastest."""

    # This clone; a site with a mirror names its address here.
    git = f"file://{Path(__file__).resolve().parents[4]}"

    license("Apache-2.0")
    version("main", branch="main")

    variant("plots", default=True, description="Pages, plots and drawings")
    variant("cuda", default=False, description="Paths of NVIDIA GPUs")

    depends_on("cxx", type="build")
    depends_on("python@3.10:", type=("build", "run"))
    depends_on("cmake@3.27:", type="build")
    depends_on("ninja@1.10:", type="build")
    depends_on("py-scikit-build-core@1.0:", type="build")
    depends_on("py-nanobind@3.1.0", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("cuda@12:13.0", type="build", when="+cuda")
    depends_on("ucx", type=("build", "run"))
    depends_on("openssl@3:", type="run")
    depends_on("py-numpy@1.24:", type=("build", "run"))
    depends_on("py-typer@0.15:0.28", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-pyyaml@6:", type=("build", "run"))
    depends_on("py-prometheus-client@0.20:", type=("build", "run"))
    depends_on("py-tomli@2:", type=("build", "run"), when="^python@:3.10")
    depends_on("py-matplotlib@3.7:", type=("build", "run"), when="+plots")
    depends_on("py-plotly@6:", type=("build", "run"), when="+plots")

    def config_settings(self, spec, prefix):
        return {"cmake.define.WAYWISER_CUDA": "ON" if spec.satisfies("+cuda") else "OFF"}
