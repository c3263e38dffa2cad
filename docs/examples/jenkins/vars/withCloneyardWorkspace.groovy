// A step of a shared library: a Perforce workspace for the time of a block.
// withCloneyardWorkspace.txt says how it is used.

def call(Map asked, Closure body) {
    String refusal = refusalOf(asked)
    if (refusal) {
        error(refusal)
    }
    Map of = [purpose: 'build', lease: '4h', timeout: '10min', key: '', site: '', snapshot: '',
              credentialsId: 'cloneyard-token', keepOnFailure: false] + asked
    boolean isKept = false
    withEnv(variablesOf(of)) {
        try {
            Map workspace = getWorkspace(of.credentialsId)
            // The token is not there for what the build runs. Nor is this a `dir`: Jenkins
            // would write beside the directory, where only Cloneyard does.
            withEnv(["CLONEYARD_PATH=${workspace.path}", "P4CLIENT=${workspace.client}",
                     "P4PORT=${workspace.p4port}"]) {
                body(workspace)
            }
        } catch (Exception failure) {
            isKept = of.keepOnFailure
            throw failure
        } finally {
            if (isKept) {
                echo("The workspace of ${of.template} is kept until its lease ends.")
            } else {
                retire(of.credentialsId)
            }
        }
    }
}

/** Return what is wrong with the arguments, or an empty text. */
private String refusalOf(Map asked) {
    List known = ['template', 'purpose', 'lease', 'timeout', 'key', 'site', 'snapshot',
                  'credentialsId', 'keepOnFailure']
    List unknown = (asked.keySet() as List) - known
    if (unknown) {
        return "withCloneyardWorkspace does not know ${unknown.join(', ')}."
    }
    if (!asked.template) {
        return 'withCloneyardWorkspace needs a template.'
    }
    return env.CLONEYARD_SERVER ? '' : 'CLONEYARD_SERVER is not set.'
}

/** Arguments reach the shell as variables: nothing in them is a command. */
private List variablesOf(Map of) {
    String key = "${env.BUILD_TAG} ${of.template} ${of.key}".trim()
    return ["CLONEYARD_TMP=${pwd(tmp: true)}", "CLONEYARD_KEY=${key}",
            "CLONEYARD_TEMPLATE=${of.template}", "CLONEYARD_PURPOSE=${of.purpose}",
            "CLONEYARD_LEASE=${of.lease}", "CLONEYARD_TIMEOUT=${of.timeout}",
            "CLONEYARD_SITE=${of.site}", "CLONEYARD_SNAPSHOT=${of.snapshot}"]
}

/** Get it, or the one that an earlier try with this key got. The key may be longer than a name. */
private Map getWorkspace(String credentialsId) {
    String told
    withCredentials([string(credentialsId: credentialsId, variable: 'CLONEYARD_TOKEN')]) {
        told = sh(label: 'Get a workspace', returnStdout: true, script: '''
            set -eu
            mkdir -p "$CLONEYARD_TMP"
            cloneyard=$CLONEYARD_TMP/cloneyard
            curl -fsSo "$cloneyard" "$CLONEYARD_SERVER/cli"
            name=jenkins-$(printf %s "$CLONEYARD_KEY" | cksum | cut -d " " -f 1)
            set -- new "$CLONEYARD_TEMPLATE" --name "$name" --key "$CLONEYARD_KEY" --json \
                --purpose "$CLONEYARD_PURPOSE" --lease "$CLONEYARD_LEASE" --timeout "$CLONEYARD_TIMEOUT"
            [ -z "$CLONEYARD_SITE" ] || set -- "$@" --site "$CLONEYARD_SITE"
            [ -z "$CLONEYARD_SNAPSHOT" ] || set -- "$@" --snapshot "$CLONEYARD_SNAPSHOT"
            answer=$CLONEYARD_TMP/$name.json
            python3 "$cloneyard" "$@" > "$answer"
            python3 -c "import json, sys
told = json.load(sys.stdin)
for field in 'name', 'path', 'client', 'p4port': print(told[field])" < "$answer"
        ''')
    }
    List lines = told.split('\n', -1) as List
    return [name: lines[0], path: lines[1], client: lines[2], p4port: lines[3]]
}

/** Retire it without waiting. What goes wrong here does not hide why a build failed. */
private void retire(String credentialsId) {
    int ended = 0
    withCredentials([string(credentialsId: credentialsId, variable: 'CLONEYARD_TOKEN')]) {
        ended = sh(label: 'Retire the workspace', returnStatus: true, script: '''
            name=jenkins-$(printf %s "$CLONEYARD_KEY" | cksum | cut -d " " -f 1)
            python3 "$CLONEYARD_TMP/cloneyard" retire "$name" --no-wait || [ $? = 4 ]  # there is none
        ''')
    }
    if (ended != 0) {
        echo('The workspace was not retired; its lease ends it.')
    }
}
