"""Writes src/filewright/types.py: the types of requests and responses, from the OpenAPI 3.0 document of
a server.

    python3 generate.py http://localhost:8080/openapi-3.0.json > src/filewright/types.py
"""

from __future__ import annotations

import json
import keyword
import sys
import textwrap
import urllib.request
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
# Only what the client and its callers use: requests and responses without their envelopes.
ROOTS = ["Do", "OperationStatus", "UploadSession", "InitiateUpload", "CompleteUpload", "OperationCreated", "SupportedOperation", "Problem", "OperationEvent", "FileTaskEvent"]


class Generator:
    def __init__(self, schemas: dict[str, Schema]) -> None:
        self.schemas = schemas
        self.done: dict[str, str] = {}  # definitions by name, in order

    def reference(self, ref: str) -> str:
        name = ref.rsplit("/", 1)[1]
        if name not in self.done:
            self.done[name] = ""  # a schema may contain itself
            self.define(name, self.schemas[name])
        return f'"{name}"'

    def members(self, schema: Schema) -> tuple[dict[str, Schema], set[str]]:
        """Returns the members of an object and the names of those that are required."""
        properties: dict[str, Schema] = {}
        required: set[str] = set()
        for branch in schema.get("allOf", []):
            if "$ref" in branch:
                branch = self.schemas[branch["$ref"].rsplit("/", 1)[1]]
            inner, needed = self.members(branch)
            properties |= inner
            required |= needed
        return properties | schema.get("properties", {}), required | set(schema.get("required", []))

    def define(self, name: str, schema: Schema) -> None:
        properties, required = self.members(schema)
        if not properties:
            self.done.pop(name)
            self.done[name] = f"{name}: TypeAlias = {self.kind(schema, name)}\n"
            return
        if not all(key.isidentifier() and not keyword.iskeyword(key) for key in properties):
            kinds = {key: self.kind(value, name + camel(key)) for key, value in properties.items()}
            fields = [f'        "{key}": {kind if key in required else f"NotRequired[{kind}]"},' for key, kind in kinds.items()]
            self.done.pop(name, None)
            self.done[name] = "\n".join([f"{name} = TypedDict(", f'    "{name}",', "    {", *fields, "    },", ")"]) + "\n"
            return
        lines = [f"class {name}(TypedDict):"]
        if doc := schema.get("description"):
            lines += docstring(doc)
        for key, value in properties.items():
            kind = self.kind(value, name + camel(key))
            lines.append(f"    {key}: {kind if key in required else f'NotRequired[{kind}]'}")
            if doc := value.get("description"):
                lines += docstring(doc)
        self.done.pop(name, None)  # after the types that it uses
        self.done[name] = "\n".join(lines) + "\n"

    def kind(self, schema: Schema, name: str) -> str:
        if "$ref" in schema:
            return self.reference(schema["$ref"])
        branches = schema.get("allOf", [])
        if len(branches) == 1 and not schema.get("properties"):
            return self.kind(branches[0], name)
        if "enum" in schema:
            return "Literal[" + ", ".join(json.dumps(v, ensure_ascii=False) if isinstance(v, str) else repr(v) for v in schema["enum"]) + "]"
        if "oneOf" in schema:
            return "Union[" + ", ".join(self.kind(b, name) for b in schema["oneOf"]) + "]"
        match schema.get("type"):
            case "string":
                return "str"
            case "integer":
                return "int"
            case "number":
                return "float"
            case "boolean":
                return "bool"
            case "array":
                return f"list[{self.kind(schema['items'], name)}]"
            case "object":
                if schema.get("properties"):
                    self.define(name, schema)
                    return f'"{name}"'
                more = schema.get("additionalProperties")
                return f"dict[str, {self.kind(more, name) if isinstance(more, dict) and more else 'Any'}]"
        return "Any"


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def docstring(text: str) -> list[str]:
    text = " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''")
    return textwrap.wrap('"""' + text + ('"""' if not text.endswith('"') else ' """'), 110, initial_indent="    ", subsequent_indent="    ")


def main() -> None:
    source = sys.argv[1]
    if source.startswith(("http:", "https:")):
        with urllib.request.urlopen(source) as response:
            document = json.load(response)
    else:
        document = json.loads(Path(source).read_text(encoding="utf-8"))
    generator = Generator(document["components"]["schemas"])
    for name in ROOTS:
        generator.reference("#/components/schemas/" + name)
    print('"""Types of requests and responses. Generated by generate.py from the OpenAPI document; do not edit."""\n')
    print("from __future__ import annotations\n")
    print("from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, Union\n")
    print("\n\n".join(generator.done.values()), end="")


if __name__ == "__main__":
    main()
