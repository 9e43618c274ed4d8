/** Loads one project of a temporary home, as the primary does, and plans its flows. */
import { ApiProjects } from '../../src/apis/api-projects.ts'
import type { ApiDefinition } from '../../src/apis/api-definition.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import type { ApiMediationPlan } from '../../src/mediation/flow-plan.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import { loadSequences, type SequenceSet } from '../../src/mediation/sequence-files.ts'
import { mediationPlan } from '../../src/plan/mediation-planning.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { openProject } from './open-project.ts'
import type { Owner } from './suite.ts'

interface LoadedProject {
  /** Undefined where the project is refused. */
  readonly api: ApiDefinition | undefined
  /** Errors and warnings, with paths within the project. */
  readonly said: readonly string[]
  readonly sequences: SequenceSet
  /** Null without flows. */
  readonly mediation: ApiMediationPlan | null
}

/** `data`: of `api.yaml`. `files`: of the project. `homeFiles`: beside it. */
export async function loadProject(
  t: Owner,
  data: object,
  files: Readonly<Record<string, string>> = {},
  homeFiles: Readonly<Record<string, string>> = {},
): Promise<LoadedProject> {
  const project = openProject({ name: 'A', context: '/a', ...data })
  const inProject = Object.entries(files).map(([path, text]) => [`apis/A/${path}`, text])
  const home = temporaryHome(t, { 'apis/A/api.yaml': project, ...Object.fromEntries(inProject), ...homeFiles })
  const projects = new ApiProjects(home)
  const { apis, errors, warnings } = projects.load(undefined, undefined, undefined, await projects.read())
  const said = [...errors, ...warnings].map(it => formatDiagnostic(it).replaceAll(`${home}/apis/A/`, ''))
  const sequences = await loadSequences(home)
  const [api] = apis
  return { api, said, sequences, mediation: api === undefined ? null : mediationPlan(api, sequences, needsOf) }
}
