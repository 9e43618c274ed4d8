/** Projects of one API, loaded from a temporary home, and the flows that their sequences and policies become. */
import type { TestContext } from 'node:test'
import { ApiProjects, type LoadedApis } from '../../src/apis/api-projects.ts'
import { shownName } from '../../src/apis/policy-names.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import { NO_SEQUENCES } from '../../src/mediation/sequence-files.ts'
import { mediationPlan } from '../../src/plan/mediation-planning.ts'
import { temporaryHome } from '../config/temporary-home.ts'

export type Files = Readonly<Record<string, string>>

export async function load(t: TestContext, files: Files): Promise<LoadedApis & { readonly said: readonly string[] }> {
  const home = temporaryHome(
    t,
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`apis/A/${name}`, text])),
  )
  return loaded(home)
}

export async function loaded(home: string, projects = new ApiProjects(home), active?: LoadedApis) {
  const read = await projects.read()
  const apis = projects.load(undefined, active?.projects, undefined, read)
  const shown = (kind: string, list: LoadedApis['errors']) =>
    list.map(it => `${kind} ${formatDiagnostic(it).replaceAll(`${home}/apis/A/`, '')}`)
  return { ...apis, said: [...shown('error', apis.errors), ...shown('warning', apis.warnings)] }
}

/** Sequences of each flow, by the names that people read, with what they need, as `NAME NAME: needs`. */
export function flowsOf({ apis }: LoadedApis, operation = ''): readonly string[] {
  const plan = mediationPlan(apis[0]!, NO_SEQUENCES, needsOf)
  if (plan === null) return []
  const flows = operation === '' ? plan.flows : plan.byOperation[operation]!
  return [flows.request, flows.response, flows.fault].map(
    ({ sequences, needs }) => `${sequences.map(shownName).join(', ')}: ${needs}`,
  )
}

/** Names of the sequences of the request and the response flow. */
export function namesOf({ apis }: LoadedApis): readonly (readonly string[])[] {
  const { request, response } = mediationPlan(apis[0]!, NO_SEQUENCES, needsOf)!.flows
  return [request.sequences, response.sequences]
}

/** A flow without sequences. */
export const NOTHING = ': nothing'

export function sequence(name: string, steps = '<property name="x-a" value="1" scope="transport"/>'): string {
  return `<sequence xmlns="http://ws.apache.org/ns/synapse" name="${name}">${steps}</sequence>`
}

/** Lines of `api.yaml`. */
export function policies(flow: string, ...uses: readonly string[]): string {
  return `  apiPolicies:\n    ${flow}:\n${uses.map(use => `      - ${use}\n`).join('')}`
}

export function use(name: string, parameters: Readonly<Record<string, string>> = {}): string {
  const given = Object.entries(parameters).map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
  return `{policyName: ${name}, policyVersion: v1, policyId: x, parameters: {${given.join(', ')}}}`
}

/** Parameters of addHeader. */
export const H = { headerName: 'x-a', headerValue: 'b "c" <d>' }
