// Runs a pipeline script with a shared library as Jenkins does: its steps, by a shell.
// Arguments: the library's vars folder, the script, a folder for temporary files.
// Source: https://www.jenkins.io/doc/pipeline/steps/workflow-durable-task-step/, …/workflow-basic-steps/

class Failed extends Exception {
    Failed(String message) { super(message) }
}

class Steps {
    Map variables = new TreeMap(System.getenv())
    String temporary

    def sh(Map asked) {
        // The step writes a file and runs it with -xe, unless it says its interpreter.
        File script = File.createTempFile('script', '.sh')
        script.text = asked.script
        def builder = new ProcessBuilder(['sh', '-xe', script.path])
        builder.environment().clear()
        builder.environment().putAll(variables)
        builder.redirectError(ProcessBuilder.Redirect.INHERIT)
        Process process = builder.start()
        process.outputStream.close()
        String said = process.inputStream.getText('UTF-8')
        int ended = process.waitFor()
        script.delete()
        if (asked.returnStatus) { System.err.print(said); return ended }
        if (ended != 0) { throw new Failed("script returned exit code ${ended}") }
        if (asked.returnStdout) { return said }
        System.err.print(said)
    }

    def sh(String script) { sh(script: script) }
    def echo(String message) { println(message) }
    def error(String message) { throw new Failed(message) }
    def pwd(Map asked) { assert asked.tmp; temporary }
    def string(Map asked) { asked }

    def withEnv(List set, Closure body) {
        Map before = variables
        variables = new TreeMap(before)
        for (each in set) {
            int at = each.indexOf('=')
            variables[each.substring(0, at).toString()] = each.substring(at + 1).toString()
        }
        try { body() } finally { variables = before }
    }

    def withCredentials(List bindings, Closure body) {
        withEnv(bindings.collect { "${it.variable}=${secret(it.credentialsId)}" }, body)
    }

    // Secrets are the controller's: no step has them in its environment by itself.
    private static String secret(String id) {
        String kept = System.getProperty("secret.${id}")
        if (kept == null) { throw new Failed("Could not find credentials entry with ID '${id}'") }
        kept
    }
}

def (String vars, String script, String temporary) = args as List
def steps = new Steps(temporary: temporary)
def binding = new Binding(env: steps.variables)
for (name in ['sh', 'echo', 'error', 'pwd', 'string', 'withEnv', 'withCredentials']) {
    binding.setVariable(name, steps.&"${name}")
}
def shell = new GroovyShell(binding)
for (file in new File(vars).listFiles().findAll { it.name.endsWith('.groovy') }) {
    binding.setVariable(file.name - '.groovy', shell.parse(file))
}
try {
    shell.evaluate(new File(script))
} catch (Failed failure) {
    println("ERROR: ${failure.message}")
    System.exit(1)
}
