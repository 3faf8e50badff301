"""A real Ray cluster of two nodes on this machine, in a process of its own: says its address, kills
its second node when a line says so, or adds one in its place, and ends with its input.

    python -m tests.crash.ray_cluster FOLDER
"""

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TOKEN = "0123456789abcdef" * 4
GUARDED = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_enable_metrics_collection": "0"}
MEMORY = 80 * 2**20


@dataclass
class RayCluster:
    address: str
    folder: Path
    _process: subprocess.Popen[str]

    def actors(self):
        """The processes of actors that judge here."""
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if self._is_actor(path)]

    def _is_actor(self, process):
        try:
            is_actor = process.joinpath("cmdline").read_bytes().startswith(b"ray::RunActor")
            files = (
                [path.readlink() for path in process.joinpath("fd").iterdir()] if is_actor else []
            )
        except OSError:
            return False
        return any(path.is_relative_to(self.folder) for path in files)

    def kill_second_node(self):
        self._tell("kill")

    def add_second_node(self):
        self._tell("add")

    def _tell(self, word):
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline().strip() == word


@contextmanager
def ray_cluster(environ):
    """The cluster, whose nodes have this environment."""
    folder = Path(tempfile.mkdtemp(prefix="eh-ray-", dir="/tmp"))
    # Ray notes the address of a cluster in a folder that it does not make itself.
    (folder / "ray").mkdir()
    with (
        (folder / "stderr").open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "tests.crash.ray_cluster", str(folder)],
            env={**os.environ, **QUIET, **environ, "RAY_TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None and process.stdin is not None
        try:
            address = process.stdout.readline().strip()
            assert address, (folder / "stderr").read_text()
            yield RayCluster(address, folder, process)
        finally:
            process.stdin.close()
            process.wait()
            subprocess.run(["rm", "-rf", str(folder)], check=True)


def main(folder):
    from ray.cluster_utils import Cluster

    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    options = {"num_cpus": 1, "object_store_memory": MEMORY, "temp_dir": folder}
    cluster = Cluster(initialize_head=True, head_node_args={**options, "include_dashboard": False})
    second = cluster.add_node(**options)
    print(cluster.address, file=out)
    try:
        for line in sys.stdin:
            if line.strip() == "kill":
                cluster.remove_node(second, allow_graceful=False)
            else:
                second = cluster.add_node(**options)
            print(line.strip(), file=out)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
