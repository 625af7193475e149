"""IR texts that several tests of bytecode begin with."""

from __future__ import annotations

FIB = """
// fib
fn f1(%v0) -> Int {
    b0(%v0:Int):
        br_imm IEq %v0, 0, b1, b2
    b1:
        %v1:Int = 0
        ret %v1
    b2:
        br_imm IEq %v0, 1, b3, b4
    b3:
        %v2:Int = 1
        ret %v2
    b4:
        %v3:Int = ISub %v0, 1
        %v4:Int = Call f1(%v3)
        %v5:Int = ISub %v0, 2
        %v6:Int = Call f1(%v5)
        %v7:Int = IAdd %v4, %v6
        ret %v7
}

// entry
fn f2() -> Int {
    b0:
        %v0:Int = 20
        %v1:Int = Call f1(%v0)
        ret %v1
}
"""


def function(parameters: str, body: str, arguments: str = "", entry: str = "") -> str:
    """A program of one function and an entry that calls it with constants."""
    count = len(parameters.split())
    values = " ".join([f"%v{index}" for index in range(count)]).replace(" ", ", ")
    typed = ", ".join([f"%v{index}:{type}" for index, type in enumerate(parameters.split())])
    header = f"b0({typed}):" if typed else "b0:"
    constants = "".join([f"%v{index}:Int = {word}\n" for index, word in enumerate(arguments.split())])
    passed = ", ".join([f"%v{index}" for index in range(len(arguments.split()))])
    call = f"{constants}%v900:Int = Call f1({passed})\nret %v900\n"
    return (
        f"// f\nfn f1({values}) -> Int {{\n{header}\n{body}\n}}\n// entry\nfn f2() -> Int {{\nb0:\n{entry or call}}}\n"
    )


def switch(keys: list[str], kind: str, subject: str) -> str:
    """A switch that gives 1 for the first key, 2 for the second, 0 for others."""
    arms = "\n".join([f"{key} -> b{index}" for index, key in enumerate(keys, 2)])
    blocks = "\n".join([f"b{index}:\n%v{index}:Int = {index - 1}\nret %v{index}" for index in range(2, len(keys) + 2)])
    return f"""
        // f
        fn f1(%v0) -> Int {{
            b0(%v0:{kind}):
                switch %v0
                    {arms}
                    _ -> b1
            b1:
                %v1:Int = 0
                ret %v1
            {blocks}
        }}
        // entry
        fn f2() -> Int {{
            b0:
                %v0:{kind} = {subject}
                %v1:Int = Call f1(%v0)
                ret %v1
        }}
    """
