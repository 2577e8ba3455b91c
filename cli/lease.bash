# lease.bash: bash completion for the program lease.
#
#   source cli/lease.bash
#
# Verbs and options are what `lease --help` and `lease VERB --help` print.
# SPDX-License-Identifier: MIT

_lease() {
    local word=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]} i
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$("$program" --help 2>/dev/null |
            sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p') --help --version" -- "$word")
        return
    fi
    # Behind "--" stands the command of lease run, and what it takes.
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            elif ((i + 1 == COMP_CWORD)); then
                mapfile -t COMPREPLY < <(compgen -c -- "$word")
            else
                mapfile -t COMPREPLY < <(compgen -f -- "$word")
            fi
            return
        fi
    done
    case ${COMP_WORDS[COMP_CWORD - 1]} in
    --db | -f | --password-file | --cacert)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$("$program" "${COMP_WORDS[1]}" --help \
        2>/dev/null | sed -n 's/^  \(-.,\|   \) \(--[a-z-]*\).*/\2/p')" -- "$word")
}

complete -F _lease lease
