"""The failing instruction, from saved output of both builders."""

from sparkyard.build_log import failing_instruction

CLASSIC = """Step 1/3 : FROM base
 ---> 1
Step 2/3 : RUN pip install ./gone.whl
 ---> Running in 2
ERROR: no such file
The command '/bin/sh -c pip install ./gone.whl' returned a non-zero code: 1"""
KIT = """#5 [2/3] RUN echo fine
#5 DONE 0.1s
#6 [3/3] RUN pip install ./gone.whl
#6 0.2 ERROR: no such file
------
 > [3/3] RUN pip install ./gone.whl:
0.2 ERROR: no such file
------
Dockerfile:3"""
STAGES = "#6 [build 2/4] RUN make\n#6 ERROR: process did not complete"


def test_both_builders():
    assert failing_instruction(CLASSIC.splitlines()) == "RUN pip install ./gone.whl"
    assert failing_instruction(KIT.splitlines()) == "RUN pip install ./gone.whl"
    assert failing_instruction(STAGES.splitlines()) == "RUN make"


def test_no_instruction_is_made_up():
    assert failing_instruction(["Cannot connect to the Docker daemon"]) == ""
