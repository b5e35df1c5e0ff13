"""Bad inventory folders: YAML, groups, names, files and variables, with every line that is said about each."""

from tests.unit.projects import HOSTS, Case, hosts

FOLDERS = (
    Case(
        name="duplicate key",
        edits=[hosts("    lane: A\n", "    lane: A\n    lane: kit\n")],
        says=["inventory/my/hosts.yml:4: all.vars.lane: written twice (first on line 3); keep one"],
    ),
    Case(
        name="all written twice",
        edits=[
            hosts(
                "          A: {context: 4096}\n", "          A: {context: 4096}\nall:\n  vars: {lane: kit}\n"
            )
        ],
        says=["inventory/my/hosts.yml:20: all: written twice (first on line 1); keep one"],
    ),
    Case(
        name="not valid yaml",
        edits=[hosts("link: {address: 10.0.0.1,", "link: {address: [10.0.0.1,")],
        says=["inventory/my/hosts.yml:11: not valid YAML: did not find expected ',' or ']'"],
    ),
    Case(
        name="tab indentation",
        edits=[hosts("    lane: A\n", "\tlane: A\n")],
        says=["inventory/my/hosts.yml:3: not valid YAML: found character that cannot start any token"],
    ),
    Case(
        name="two documents",
        edits=[hosts("          A: {context: 4096}\n", "          A: {context: 4096}\n---\nall: {}\n")],
        says=["inventory/my/hosts.yml:20: a second YAML document (---); put everything into one"],
    ),
    Case(
        name="empty file",
        files={HOSTS: "# nothing yet\n"},
        says=["inventory/my/hosts.yml: empty; an inventory starts with all:"],
    ),
    Case(
        name="no hosts file",
        files={"inventory/my/README.md": "mine\n"},
        gone=["inventory/my/hosts.yml"],
        says=["inventory/my: no hosts.yml in this folder; write one with invoke init"],
    ),
    Case(
        name="a list on top",
        files={HOSTS: "- all\n"},
        says=["inventory/my/hosts.yml:1: an inventory starts with all:, found a list"],
    ),
    Case(
        name="no group all",
        files={
            HOSTS: "sparks:\n  hosts:\n    spark-1: {ansible_connection: local, rank: 0, link: {address: 10.0.0.1, interface: eth0, hcas: [a]}}\n"
        },
        says=["inventory/my/hosts.yml:1: no group all; an inventory starts with all:"],
    ),
    Case(
        name="a variable on top",
        edits=[hosts("all:\n", "lanes: {A: {context: 1}}\nall:\n")],
        says=["inventory/my/hosts.yml:1: lanes: a variable, not a group: put it below all: vars:"],
    ),
    Case(
        name="a variable among the parts of a group",
        edits=[hosts("all:\n", "all:\n  rank: 0\n")],
        says=["inventory/my/hosts.yml:2: all.rank: a variable: put it below vars:"],
    ),
    Case(
        name="misspelt part of a group",
        edits=[hosts("      hosts:\n", "      host:\n")],
        says=["inventory/my/hosts.yml:7: sparks.host: not a known key of a group (did you mean hosts?)"],
    ),
    Case(
        name="hosts as a list",
        edits=[hosts("  children:\n    sparks:\n", "  hosts: [spark-9]\n  children:\n    sparks:\n")],
        says=["inventory/my/hosts.yml:5: all.hosts: a mapping is expected, found a list"],
    ),
    Case(
        name="host without a colon",
        edits=[hosts("  children:\n    sparks:\n", "  hosts:\n    spark-9\n  children:\n    sparks:\n")],
        says=[
            'inventory/my/hosts.yml:5: all.hosts: a mapping is expected, found "spark-9" (a colon is missing after the name)'
        ],
    ),
    Case(
        name="host range",
        edits=[hosts("        spark-2:\n", "        spark-[2:4]:\n")],
        says=[
            'inventory/my/hosts.yml:12: sparks.hosts: host ranges are not supported; write the nodes of "spark-[2:4]" out'
        ],
    ),
    Case(
        name="host pattern",
        edits=[hosts("        spark-2:\n", '        "spark-*":\n')],
        says=[
            'inventory/my/hosts.yml:12: sparks.hosts: "spark-*" is a host pattern, which is not supported; name each node'
        ],
    ),
    Case(
        name="port in a host name",
        edits=[hosts("        spark-2:\n", '        "spark-2:2222":\n')],
        says=[
            'inventory/my/hosts.yml:12: sparks.hosts: "spark-2:2222": a port in a name is not supported; set ansible_port'
        ],
    ),
    Case(
        name="jinja in a host name",
        edits=[hosts("        spark-2:\n", '        "spark-{{ n }}":\n')],
        says=[
            'inventory/my/hosts.yml:12: sparks.hosts: "spark-{{ n }}": Jinja is not evaluated here; write the name out'
        ],
    ),
    Case(
        name="space in a host name",
        edits=[hosts("        spark-2:\n", "        spark 2:\n")],
        says=[
            'inventory/my/hosts.yml:12: sparks.hosts: "spark 2" is no node name; use letters, digits, dots and dashes'
        ],
    ),
    Case(
        name="node that is text",
        edits=[
            hosts(
                "        spark-2:\n          ansible_host: spark-2.local\n          ansible_user: spark\n          rank: 1\n          link: {address: 10.0.0.2, interface: enp1s0f0np0, hcas: [rocep1s0f0, roceP2p1s0f0]}\n",
                "        spark-2: spark-2.local\n",
            )
        ],
        says=[
            'inventory/my/hosts.yml:12: spark-2: a node holds a mapping of variables, found "spark-2.local"'
        ],
    ),
    Case(
        name="group that is text",
        edits=[hosts("    sparks:\n", "    pair: spark-1\n    sparks:\n")],
        says=['inventory/my/hosts.yml:6: pair: a group holds hosts, vars and children; found "spark-1"'],
    ),
    Case(
        name="group name with a dot",
        edits=[hosts("    sparks:\n", "    dgx.sparks:\n")],
        says=[
            'inventory/my/hosts.yml:6: dgx.sparks: "dgx.sparks" is no group name; use letters, digits, _ and -'
        ],
    ),
    Case(
        name="all below a group",
        edits=[
            hosts("      vars:\n        lanes:\n", "      children: {all: }\n      vars:\n        lanes:\n")
        ],
        says=["inventory/my/hosts.yml:17: all: all holds every group and cannot be below one"],
    ),
    Case(
        name="a group below itself",
        edits=[
            hosts(
                "      vars:\n        lanes:\n",
                "      children: {pair: {children: {sparks: }}}\n      vars:\n        lanes:\n",
            )
        ],
        says=[
            "inventory/my/hosts.yml:6: sparks: a group below itself; take it out of its own children",
            "inventory/my/hosts.yml:17: pair: a group below itself; take it out of its own children",
        ],
    ),
    Case(
        name="node and group of one name",
        edits=[hosts("    sparks:\n", "    spark-1:\n      hosts: {spark-1: }\n    sparks:\n")],
        says=[
            "inventory/my/hosts.yml:7: spark-1: both a node and a group have this name; rename one of them"
        ],
    ),
    Case(
        name="priority that is text",
        edits=[hosts("        lanes:\n", "        ansible_group_priority: high\n        lanes:\n")],
        says=[
            'inventory/my/hosts.yml:18: sparks.vars.ansible_group_priority: a whole number is expected, found "high"'
        ],
    ),
    Case(
        name="priority of a node",
        edits=[hosts("          rank: 0\n", "          rank: 0\n          ansible_group_priority: 5\n")],
        says=[
            "inventory/my/hosts.yml:11: spark-1.ansible_group_priority: works only among a group's vars in hosts.yml"
        ],
    ),
    Case(
        name="inventory plugin",
        files={HOSTS: "plugin: community.general.nmap\naddress: 10.0.0.0/24\n"},
        says=[
            "inventory/my/hosts.yml:1: plugin: inventory plugins are not supported; write the nodes out below all:"
        ],
    ),
    Case(
        name="vault file",
        files={HOSTS: "$ANSIBLE_VAULT;1.1;AES256\n6162\n"},
        says=[
            "inventory/my/hosts.yml:1: Ansible Vault is not supported; keep secrets in the environment or a 0600 file"
        ],
    ),
    Case(
        name="vault value",
        edits=[
            hosts(
                "ansible_user: spark\n",
                "ansible_user: !vault |\n            $ANSIBLE_VAULT;1.1;AES256\n            6162\n",
            )
        ],
        says=[
            "inventory/my/hosts.yml:14: spark-2.ansible_user: !vault is not supported; use the environment or a 0600 file"
        ],
    ),
    Case(
        name="unsafe tag",
        edits=[hosts("ansible_user: spark\n", "ansible_user: !unsafe spark\n")],
        says=[
            "inventory/my/hosts.yml:14: spark-2.ansible_user: the YAML tag !unsafe is not supported; write the plain value"
        ],
    ),
    Case(
        name="jinja value",
        edits=[hosts("ansible_host: spark-2.local", 'ansible_host: "{{ inventory_hostname }}.local"')],
        says=[
            "inventory/my/hosts.yml:13: spark-2.ansible_host: Jinja is not evaluated here; write the value out"
        ],
    ),
    Case(
        name="script",
        files={HOSTS: "#!/usr/bin/env python3\nprint('{}')\n"},
        says=[
            "inventory/my/hosts.yml:1: a script (#!): dynamic inventories are not supported; write the nodes out in YAML"
        ],
    ),
    Case(
        name="ini inventory",
        files={"inventory/my/hosts.ini": "[sparks]\nspark-1\n"},
        says=["inventory/my/hosts.ini: only YAML inventories are supported; write it as hosts.yml"],
    ),
    Case(
        name="misspelt hosts file",
        files={"inventory/my/host.yml": "all:\n"},
        says=[
            "inventory/my/host.yml: not a known file (did you mean hosts.yml?); only hosts.yml, group_vars and host_vars are read"
        ],
    ),
    Case(
        name="both hosts files",
        files={"inventory/my/hosts.yaml": "all:\n"},
        says=["inventory/my/hosts.yaml: hosts.yml is there too; keep one of the two"],
    ),
    Case(
        name="unknown folder",
        files={"inventory/my/groups_vars/all.yml": "lane: A\n"},
        says=[
            "inventory/my/groups_vars: not a known folder (did you mean group_vars?); move it out of the inventory"
        ],
    ),
    Case(
        name="lanes folder",
        files={"inventory/my/lanes/A.yml": "context: 1\n"},
        says=["inventory/my/lanes: not read; a lane's settings go into the variable lanes, below vars:"],
    ),
    Case(
        name="unknown file",
        files={"inventory/my/notes.txt": "x\n"},
        says=["inventory/my/notes.txt: not a known file; move it out of the inventory"],
    ),
    Case(
        name="group_vars of no group",
        files={"inventory/my/group_vars/spark.yml": "lane: A\n"},
        says=["inventory/my/group_vars/spark.yml: not a known group (did you mean sparks?)"],
    ),
    Case(
        name="host_vars of no node",
        files={"inventory/my/host_vars/spark-3.yml": "rank: 2\n"},
        says=["inventory/my/host_vars/spark-3.yml: not a known node (did you mean spark-2?)"],
    ),
    Case(
        name="group_vars with a strange ending",
        files={"inventory/my/group_vars/sparks.txt": "lane: A\n"},
        says=["inventory/my/group_vars/sparks.txt: .txt is not read; name it sparks.yml"],
    ),
    Case(
        name="group_vars file and folder",
        files={
            "inventory/my/group_vars/sparks.yml": "root: /data/sparkyard\n",
            "inventory/my/group_vars/sparks/a.yml": "root: /data/sparkyard\n",
        },
        says=[
            "inventory/my/group_vars/sparks: sparks.yml stands beside it, and Ansible reads only one; keep one"
        ],
    ),
    Case(
        name="group_vars file that is a list",
        files={"inventory/my/group_vars/all.yml": "- lane\n"},
        says=["inventory/my/group_vars/all.yml:1: a mapping of variables is expected, found a list"],
    ),
    Case(
        name="group_vars that is a file",
        files={"inventory/my/group_vars": "x\n"},
        says=["inventory/my/group_vars: a folder is expected here, not a file"],
    ),
    Case(
        name="unknown variable",
        edits=[hosts("          rank: 0\n", "          rank: 0\n          rnak: 0\n")],
        says=["inventory/my/hosts.yml:11: spark-1.rnak: not a known variable (did you mean rank?)"],
    ),
    Case(
        name="unknown variable, nothing near",
        edits=[hosts("          rank: 0\n", "          rank: 0\n          colour: blue\n")],
        says=[
            "inventory/my/hosts.yml:11: spark-1.colour: not a known variable; docs/inventory.md lists them"
        ],
    ),
    Case(
        name="unknown key of link",
        edits=[hosts("{address: 10.0.0.1,", "{adress: 10.0.0.1,")],
        says=[
            "inventory/my/hosts.yml:11: spark-1.link.address: missing: the IPv4 address of the RoCE link",
            "inventory/my/hosts.yml:11: spark-1.link.adress: not a known key (did you mean address?)",
        ],
    ),
    Case(
        name="password",
        edits=[hosts("ansible_user: spark\n", 'ansible_user: spark\n          ansible_password: "x"\n')],
        says=[
            "inventory/my/hosts.yml:15: spark-2.ansible_password: not supported: log in with a key instead (ssh-copy-id)"
        ],
    ),
    Case(
        name="become",
        edits=[hosts("ansible_user: spark\n", "ansible_user: spark\n          ansible_become: true\n")],
        says=[
            "inventory/my/hosts.yml:15: spark-2.ansible_become: not supported: sparkyard never becomes root"
        ],
    ),
    Case(
        name="ssh arguments",
        edits=[
            hosts(
                "ansible_user: spark\n",
                "ansible_user: spark\n          ansible_ssh_common_args: -o StrictHostKeyChecking=no\n",
            )
        ],
        says=[
            "inventory/my/hosts.yml:15: spark-2.ansible_ssh_common_args: not supported: put it below Host NODE in ~/.ssh/config"
        ],
    ),
    Case(
        name="old ssh name",
        edits=[hosts("ansible_host: spark-2.local", "ansible_ssh_host: spark-2.local")],
        says=[
            "inventory/my/hosts.yml:13: spark-2.ansible_ssh_host: not supported: an old name; write ansible_host"
        ],
    ),
    Case(
        name="host key checking",
        edits=[
            hosts(
                "ansible_user: spark\n", "ansible_user: spark\n          ansible_host_key_checking: false\n"
            )
        ],
        says=[
            "inventory/my/hosts.yml:15: spark-2.ansible_host_key_checking: not supported: host keys are always checked (invoke trust)"
        ],
    ),
    Case(
        name="near miss of an ansible name",
        edits=[hosts("ansible_host: spark-2.local", "ansible_hots: spark-2.local")],
        says=[
            "inventory/my/hosts.yml:13: spark-2.ansible_hots: not a known variable (did you mean ansible_host?)"
        ],
    ),
    Case(
        name="other ansible name",
        edits=[
            hosts("ansible_user: spark\n", "ansible_user: spark\n          ansible_facts_parallel: true\n")
        ],
        says=[
            "inventory/my/hosts.yml:15: spark-2.ansible_facts_parallel: not supported: sparkyard does not use it; delete the line"
        ],
    ),
    Case(
        name="other connection",
        edits=[hosts("ansible_connection: local", "ansible_connection: docker")],
        says=[
            'inventory/my/hosts.yml:9: spark-1.ansible_connection: local or ssh is expected, found "docker"'
        ],
    ),
)
