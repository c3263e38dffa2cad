// .teamcity/settings.kts
import jetbrains.buildServer.configs.kotlin.*
import jetbrains.buildServer.configs.kotlin.buildSteps.script

version = "2025.11"

project {
    buildType(Build)
}

// The agents mount the workspaces. env.CLONEYARD_SERVER and, as a password,
// env.CLONEYARD_TOKEN are parameters of the project. TeamCity puts in what stands
// between percent signs.
object Build : BuildType({
    name = "Build"
    steps {
        script {
            name = "Get a workspace"
            scriptContent = """
                set -e
                curl -fsSo cloneyard "%env.CLONEYARD_SERVER%/cli"
                python3 cloneyard new main --purpose build --lease 4h \
                    --name "tc-%teamcity.build.id%" --key "teamcity %teamcity.build.id%" \
                    --timeout 10min --export > workspace.sh
            """.trimIndent()
        }
        script {
            name = "Build in it"
            scriptContent = """
                set -e
                . ./workspace.sh
                make
            """.trimIndent()
        }
        script {
            name = "Give it back"
            executionMode = BuildStep.ExecutionMode.ALWAYS
            scriptContent = """
                python3 cloneyard retire "tc-%teamcity.build.id%" --no-wait
            """.trimIndent()
        }
    }
})
