"""Bad recipes: shape, settings, checkpoints, image, with every line that is said about each."""

from tests.unit.projects import RECIPE, Case, recipe

RECIPES = (
    Case(name="empty recipe", files={RECIPE: "# later\n"}, says=["recipes/a/recipe.yml: lane: missing"]),
    Case(
        name="recipe that is a list",
        files={RECIPE: "- lane: A\n"},
        says=["recipes/a/recipe.yml: lane: missing"],
    ),
    Case(name="lane missing", edits=[recipe("lane: A\n", "")], says=["recipes/a/recipe.yml: lane: missing"]),
    Case(
        name="lane with a space",
        edits=[recipe("lane: A\n", "lane: A 4\n")],
        lane="A 4",
        says=[
            "inventory/my/hosts.yml:19: lanes.A: not a known lane; known: A 4, kit",
            'recipes/a/recipe.yml:1: lane: letters, digits, _ and -, with a letter first is expected, found "A 4"',
        ],
    ),
    Case(
        name="two recipes of one lane",
        files={"recipes/b/recipe.yml": "lane: A\n"},
        says=["recipes/b/recipe.yml: lane: A is the lane of recipes/a/recipe.yml too; rename one of them"],
    ),
    Case(
        name="title missing",
        edits=[recipe("title: an engine\n", "")],
        says=["recipes/a/recipe.yml:1: title: missing"],
    ),
    Case(
        name="unknown key",
        edits=[recipe("title: an engine\n", "title: an engine\nservice: {}\n")],
        says=["recipes/a/recipe.yml:3: service: not a known key (did you mean services?)"],
    ),
    Case(
        name="unknown key inside",
        edits=[recipe("timeout: 600", "timeout: 600\n  prot: 8000")],
        says=[
            "recipes/a/recipe.yml:48: ready.prot: not a known key; known: url, model, timeout, log_silence, health, api_key, body"
        ],
    ),
    Case(
        name="unknown key in a list",
        edits=[recipe("target: /models", "taget: /models")],
        says=[
            "recipes/a/recipe.yml:40: services.engine.mounts.0.taget: not a known key (did you mean target?)",
            "recipes/a/recipe.yml:40: services.engine.mounts.0.target: missing",
        ],
    ),
    Case(
        name="several unknown and missing",
        edits=[
            recipe("title: an engine", "titel: an engine"),
            recipe("stop: {grace: 10}", "stop: {grce: 10}"),
        ],
        says=[
            "recipes/a/recipe.yml:1: title: missing",
            "recipes/a/recipe.yml:2: titel: not a known key (did you mean title?)",
            "recipes/a/recipe.yml:54: stop.grace: missing",
            "recipes/a/recipe.yml:54: stop.grce: not a known key (did you mean grace?)",
        ],
    ),
    Case(
        name="timeout that is text",
        edits=[recipe("timeout: 600", "timeout: 10m")],
        says=['recipes/a/recipe.yml:47: ready.timeout: a number is expected, found "10m"'],
    ),
    Case(
        name="timeout of nothing",
        edits=[recipe("timeout: 600", "timeout: 0")],
        says=["recipes/a/recipe.yml:47: ready.timeout: more than 0 is expected, found 0"],
    ),
    Case(
        name="timeout in base 60",
        edits=[recipe("timeout: 600", "timeout: 10:00")],
        says=['recipes/a/recipe.yml:47: ready.timeout: YAML reads 10:00 in base 60; quote it: "10:00"'],
    ),
    Case(
        name="nodes as a number",
        edits=[recipe("nodes: {at_least: 2, at_most: 4}", "nodes: 2")],
        says=["recipes/a/recipe.yml:3: nodes: a mapping is expected, found the number 2"],
    ),
    Case(
        name="nodes the wrong way round",
        edits=[recipe("{at_least: 2, at_most: 4}", "{at_least: 4, at_most: 2}")],
        lane="A",
        says=["recipes/a/recipe.yml:3: nodes.at_least: 4 is more than at_most, 2"],
    ),
    Case(
        name="nodes of none",
        edits=[recipe("{at_least: 2, at_most: 4}", "{at_least: 0, at_most: 4}")],
        says=["recipes/a/recipe.yml:3: nodes.at_least: at least 1 is expected, found 0"],
    ),
    Case(
        name="setting without a source",
        edits=[recipe(", source: {kind: chosen, why: quick}", "")],
        says=["recipes/a/recipe.yml:6: settings.mode.source: missing"],
    ),
    Case(
        name="setting with a cite missing",
        edits=[recipe("{kind: published, cite: guide}}\n  api_key", "{kind: published}}\n  api_key")],
        says=["recipes/a/recipe.yml:9: settings.port.source: a published value needs `cite`"],
    ),
    Case(
        name="setting with a why missing",
        edits=[recipe("{kind: chosen, why: safe}", "{kind: chosen}")],
        says=["recipes/a/recipe.yml:8: settings.expose.source: a chosen value needs `why`"],
    ),
    Case(
        name="source of an unknown kind",
        edits=[recipe("{kind: chosen, why: safe}", "{kind: choosen, why: safe}")],
        says=[
            'recipes/a/recipe.yml:8: settings.expose.source.kind: "choosen" is not known here (did you mean chosen?)'
        ],
    ),
    Case(
        name="default outside its bounds",
        edits=[recipe("default: 2048", "default: 128")],
        says=["recipes/a/recipe.yml:5: settings.context.default: at least 256 is expected, found 128"],
    ),
    Case(
        name="default not among its choices",
        edits=[recipe("default: fast", "default: quick")],
        says=['recipes/a/recipe.yml:6: settings.mode.default: fast or exact is expected, found "quick"'],
    ),
    Case(
        name="default that is a list",
        edits=[recipe("default: 2048", "default: [2048]")],
        says=[
            "recipes/a/recipe.yml:5: settings.context.default: text, a number or true or false is expected, found a list"
        ],
    ),
    Case(
        name="default that yaml reads as false",
        edits=[recipe("default: fast, choices: [fast, exact]", "default: off, choices: [on, off]")],
        says=[
            'recipes/a/recipe.yml:6: settings.mode.choices.0: YAML reads on as true; write true, or quote it: "on"',
            'recipes/a/recipe.yml:6: settings.mode.choices.1: YAML reads off as false; write false, or quote it: "off"',
            'recipes/a/recipe.yml:6: settings.mode.default: YAML reads off as false; write false, or quote it: "off"',
        ],
    ),
    Case(
        name="setting with a capital",
        edits=[recipe("  rate:", "  Rate:")],
        says=[
            "recipes/a/recipe.yml:7: settings.Rate: a name of lower-case letters, digits, _ and - is expected"
        ],
    ),
    Case(
        name="setting that is a variable of the inventory",
        edits=[recipe("  rate:", "  models:")],
        says=[
            "recipes/a/recipe.yml:7: settings.models: models is a variable of the inventory; give the setting another name"
        ],
    ),
    Case(
        name="setting whose variable is taken",
        edits=[recipe("  rate:", "  state:")],
        says=[
            "recipes/a/recipe.yml:7: settings.state: SPARKYARD_STATE has another meaning; give the setting another name"
        ],
    ),
    Case(
        name="revision without quotes",
        edits=[
            recipe("0123456789abcdef0123456789abcdef01234567", "1234567890123456789012345678901234567890")
        ],
        says=[
            "recipes/a/recipe.yml:14: checkpoints.main.revision: YAML reads these 40 digits as a number; quote it"
        ],
    ),
    Case(
        name="short revision that is a number",
        edits=[recipe("0123456789abcdef0123456789abcdef01234567", "12345678")],
        says=[
            'recipes/a/recipe.yml:14: checkpoints.main.revision: text is expected, found the number 12345678; quote it: "12345678"'
        ],
    ),
    Case(
        name="revision like an exponent",
        edits=[recipe("0123456789abcdef0123456789abcdef01234567", "1234e5678")],
        says=[
            'recipes/a/recipe.yml:14: checkpoints.main.revision: a number to some readers; write it out, or quote it: "1234e5678"'
        ],
    ),
    Case(
        name="revision zero-padded",
        edits=[recipe("0123456789abcdef0123456789abcdef01234567", "01234567")],
        says=[
            'recipes/a/recipe.yml:14: checkpoints.main.revision: zero-padded; drop the zeros, or quote it: "01234567"'
        ],
    ),
    Case(
        name="revision left open",
        edits=[recipe("0123456789abcdef0123456789abcdef01234567", "<commit>")],
        says=[
            'recipes/a/recipe.yml:14: checkpoints.main.revision: "<commit>" is a placeholder; put the commit there'
        ],
    ),
    Case(
        name="repo without an owner",
        edits=[recipe("repo: org/model", "repo: model")],
        says=[
            'recipes/a/recipe.yml:13: checkpoints.main.repo: OWNER/NAME of a Hugging Face repository is expected, found "model"'
        ],
    ),
    Case(
        name="checkpoint files outside",
        edits=[recipe('["*.safetensors"]', '["../*.safetensors"]')],
        says=[
            'recipes/a/recipe.yml:16: checkpoints.main.files.0: a relative pattern without .. is expected, found "../*.safetensors"'
        ],
    ),
    Case(
        name="checkpoint files absolute",
        edits=[recipe('["*.safetensors"]', "[/models/*]")],
        says=[
            'recipes/a/recipe.yml:16: checkpoints.main.files.0: a relative pattern without .. is expected, found "/models/*"'
        ],
    ),
    Case(
        name="condition over a setting that is not there",
        edits=[recipe("    repo: org/model\n", "    repo: org/model\n    when: lane.mod == 'fast'\n")],
        says=["recipes/a/recipe.yml:14: checkpoints.main.when: lane.mod is not known (did you mean mode?)"],
    ),
    Case(
        name="condition that is no expression",
        edits=[recipe("    repo: org/model\n", "    repo: org/model\n    when: lane.mode ==\n")],
        says=[
            "recipes/a/recipe.yml:14: checkpoints.main.when: unexpected 'end of template'",
        ],
    ),
    Case(
        name="image built and pulled",
        edits=[
            recipe(
                "  build:\n",
                '  pull: {repository: r, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}\n  build:\n',
            )
        ],
        says=["recipes/a/recipe.yml:17: image: exactly one of `build`, `pull` and `made` is needed"],
    ),
    Case(
        name="image by a short digest",
        edits=[
            (
                "recipes/kit/recipe.yml",
                "0000000000000000000000000000000000000000000000000000000000000000",
                "00ff",
            )
        ],
        lane="kit",
        says=[
            'recipes/kit/recipe.yml:9: image.pull.digest: sha256: and 64 hex digits is expected, found "sha256:00ff"'
        ],
    ),
)
