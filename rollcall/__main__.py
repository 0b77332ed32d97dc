"""Entry point: what the `rollcall` command and `python -m rollcall` start."""

from rollcall.program import use_program_path


def main() -> None:
    """Run the command and leave with its exit code."""
    use_program_path()
    from cli.main import main as run

    run()


if __name__ == "__main__":
    main()
