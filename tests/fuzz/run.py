"""The long run: python tests/fuzz/run.py [--cases N] [--hours H]

Cases run in a child process, batch by batch. One that takes more than 20 s, or ends the
process, is a failure too. A failure is printed with its case;
``--again CASE`` runs that one alone, in this process.
"""

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

LIMIT = 20  # seconds of work that one case may take
BATCH = 500  # cases of a process; to start one costs as much as a hundred cases


def watched(kind, seed, count):
    """Run a batch in a child process; yield (case, failure or None)."""
    command = [sys.executable, __file__, "--child", kind, str(seed), str(count)]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    options = {"text": True, "env": os.environ | threads}
    case = None  # that which the child works on

    with subprocess.Popen(command, stdout=subprocess.PIPE, **options) as child:
        for line in child.stdout:
            message = json.loads(line)
            if "failure" in message:
                yield case, message["failure"]
            case = message.get("case")

    if case is not None or child.returncode:
        yield case, f"the process ended with status {child.returncode}"


def run_batch(kind, seed, count):
    """Run a batch in this process, and tell of each case before and after."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    messages = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not be taken for a report

    def tell(**report):
        messages.write(json.dumps(report) + "\n")
        messages.flush()

    cases, run = _parts(kind)

    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @seeded(seed)
    @given(cases())
    def body(case):
        # Either timer ends the process. A machine that is busy is no hang.
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        signal.setitimer(signal.ITIMER_REAL, 30 * LIMIT)
        tell(case=case)
        tell(failure=run(case))

    body()


def _parts(kind):
    module = importlib.import_module("damage" if kind == "files" else "cases")
    return module.cases, module.run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000, help="at least so many")
    parser.add_argument("--hours", type=float, default=0.0, help="at least so long")
    parser.add_argument("--seed", type=int, default=0, help="of the first batch")
    parser.add_argument("--kind", choices=["api", "files"], default="api")
    parser.add_argument("--again", help="one case, as it was printed")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, seed, count = options.child
        run_batch(kind, int(seed), int(count))
        return
    if options.again:
        _, run = _parts(options.kind)
        sys.exit(run(json.loads(options.again)) or 0)

    begin = time.monotonic()
    n_cases = 0
    seed = options.seed
    failures = Counter()

    while n_cases < options.cases or time.monotonic() - begin < 3600 * options.hours:
        for case, failure in watched(options.kind, seed, BATCH):
            n_cases += 1
            if failure:
                failures[failure] += 1
                if failures[failure] <= 3:
                    print(f"{failure}\n  --again '{json.dumps(case)}'", flush=True)
        seed += 1

    minutes = (time.monotonic() - begin) / 60
    print(f"{n_cases} cases in {minutes:.1f} min, {failures.total()} failures")
    sys.exit(failures.total() > 0)


if __name__ == "__main__":
    main()
