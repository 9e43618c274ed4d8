/** Gateways whose APIs validate messages against documents, as their projects ask for it. */
import { ApiProjects, type LoadedApis } from '../../src/apis/api-projects.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import { NO_SEQUENCES } from '../../src/mediation/sequence-files.ts'
import { mediationPlan } from '../../src/plan/mediation-planning.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import type { Owner } from './suite.ts'

const API = (context: string, more: string) => `type: api
version: v4.3.0
data:
  name: ${context.slice(1).toUpperCase()}
  context: ${context}
  version: "1"
  endpointConfig:
    endpoint_type: http
    production_endpoints: {url: "http://p"}
${more}`

interface LoadedProjects extends LoadedApis {
  /** Errors and warnings. */
  readonly said: readonly string[]
}

/** One project per entry: its context, lines within `data`, and further files. */
export async function loadProjects(
  t: Owner,
  projects: Readonly<Record<string, readonly [more: string, files: Readonly<Record<string, string>>]>>,
): Promise<LoadedProjects> {
  const files = Object.entries(projects).flatMap(([context, [more, others]]) => [
    [`apis${context}/api.yaml`, API(context, more)] as const,
    ...Object.entries(others).map(([name, text]) => [`apis${context}/${name}`, text] as const),
  ])
  const home = temporaryHome(t, Object.fromEntries(files))
  const reader = new ApiProjects(home)
  const loaded = reader.load(undefined, undefined, undefined, await reader.read())
  const said = [...loaded.errors, ...loaded.warnings].map(it => formatDiagnostic(it).replaceAll(`${home}/apis`, ''))
  return { ...loaded, said }
}

/** Overrides of the plan of each API, by its context. */
export function mediationsOf({ apis }: LoadedApis): ReadonlyMap<string, Pick<ApiPlan, 'mediation' | 'resources'>> {
  return new Map(
    apis.map(api => {
      const { resources } = api
      return [api.context, { resources, mediation: mediationPlan(api, NO_SEQUENCES, needsOf) }] as const
    }),
  )
}
