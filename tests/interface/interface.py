# The tests of tests/interface/run. Usage: interface.py PROGRAM CHECKPOINTS
import os
import pathlib
import sys
import tempfile

tests = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(tests / "server"), str(tests / "dialects")]
import described  # noqa: E402
import told  # noqa: E402
from client import Checks, Server, tone  # noqa: E402

program, checkpoints = sys.argv[1:3]


def main():
    checks = Checks()
    s = Server(program, "--lanes", "2", "-q")
    for test in (described.every_path_is_there, described.every_field_is_as_told,
                 described.examples_of_the_documents_run):
        checks.run(test.__name__, test, s)
    s.stop()
    with tempfile.TemporaryDirectory() as folder:
        keys, voices = os.path.join(folder, "keys"), os.path.join(folder, "voices")
        os.mkdir(voices)
        with open(keys, "w") as f:
            f.write("sesame\n")
        s = Server(program, "--lanes", "2", "-q", "--api-key-file", keys)
        checks.run("keys_are_told_truly", described.keys_are_told_truly, s)
        s.stop()
        s = Server(program, "--lanes", "2", "-q", "-m", os.path.join(checkpoints, "tiny06-base"), "--voices", voices)
        checks.run("the_upload_of_the_documents_runs", described.the_upload_of_the_documents_runs, s, tone(2))
        s.stop()
        checks.run("a_voice_is_offered_where_it_can_speak", described.a_voice_is_offered_where_it_can_speak, program,
                   checkpoints, voices, tone(2))
    checks.run("wrong_files_are_told", told.wrong_files_are_told, program)
    checks.run("the_unit_is_one_for_systemd", told.the_unit_is_one_for_systemd, program)
    checks.run("the_container_for_home_assistant_speaks", told.the_container_for_home_assistant_speaks, program)
    checks.run("flags_win_then_variables_then_the_file", told.flags_win_then_variables_then_the_file, program)
    checks.run("the_environment_names_the_model", told.the_environment_names_the_model, program, checkpoints)
    checks.run("a_server_that_nobody_asks_gives_its_memory_back",
               told.a_server_that_nobody_asks_gives_its_memory_back, program)
    checks.run("a_worker_that_cannot_be_started_is_told", told.a_worker_that_cannot_be_started_is_told, program)
    checks.run("a_model_that_is_not_opened_in_time_is_told", told.a_model_that_is_not_opened_in_time_is_told, program)
    checks.run("a_model_that_has_gone_meanwhile_is_told", told.a_model_that_has_gone_meanwhile_is_told, program,
               checkpoints)
    sys.exit(checks.end())


main()
