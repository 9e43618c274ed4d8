/** The healthcare API of the package in a running gateway, with tokens of an application that is subscribed to it. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { JsonObject } from '../../src/mounted/healthcare/json-text.ts'
import { home, managed, start } from './operator.ts'
import type { Home, Program } from './program.ts'
import { put } from './reloading.ts'

const PROJECT = readFileSync(new URL('../../conf/apis/HealthcareService/api.yaml', import.meta.url), 'utf8')
export const ALL = 'system/HealthcareService.cruds'

interface Healthcare {
  readonly at: Home
  readonly program: Program
  /** URL of the API. */
  readonly base: string
  /** A token with exactly these scopes, separated by spaces. */
  token(scopes: string): Promise<string>
  ask(method: string, path: string, options?: AskOptions): Promise<Asked>
}

export interface AskOptions {
  /** Null: none. Left out: a token with every scope. */
  readonly token?: string | null
  readonly fields?: Readonly<Record<string, string>>
  readonly body?: unknown
}

interface Asked {
  readonly status: number
  readonly fields: Headers
  readonly text: string
  /** {} for an empty body. */
  readonly json: JsonObject
}

/**
 * `edit`: of the project; the sample is left out otherwise. `sets`: keys of the configuration. `toml`: text of
 * `deployment.toml`.
 */
export async function startHealthcare(
  edit: (project: string) => string = project => project,
  sets: readonly string[] = [],
  toml = '',
): Promise<Healthcare> {
  const at = home()
  if (toml !== '') put(at, 'deployment.toml', toml)
  put(at, 'apis/HealthcareService/api.yaml', edit(PROJECT.replace('sample_services: 200', 'sample_services: 0')))
  const gateway = await start(at, sets)
  const base = `http://127.0.0.1:${gateway.port}/healthcare`
  await managed(at, 'application', 'create', 'Care')
  await managed(at, 'key', 'generate', 'Care')
  await managed(at, 'subscription', 'add', 'Care', 'HealthcareService:1.0.0')
  const token = async (scopes: string): Promise<string> =>
    (await managed(at, 'token', 'Care', '--scopes', scopes)).trim()
  const everything = await token(ALL)
  const ask = async (method: string, path: string, options: AskOptions = {}): Promise<Asked> => {
    const { token: given = everything, fields = {}, body } = options
    const authorization: Record<string, string> = given === null ? {} : { authorization: `Bearer ${given}` }
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/health+json' }
    const sent = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body)
    const headers = { ...type, ...authorization, ...fields }
    const response = await fetch(path.startsWith('http') ? path : `${base}${path}`, { method, headers, body: sent })
    const text = await response.text()
    const isJson = text.startsWith('{')
    return {
      status: response.status,
      fields: response.headers,
      text,
      json: isJson ? (JSON.parse(text) as JsonObject) : {},
    }
  }
  return { at, program: gateway.program, base, token, ask }
}

/** `error login 900902` for each issue of an outcome. */
export function issuesOf({ json }: Asked): readonly string[] {
  assert.equal(json.resourceType, 'OperationOutcome', JSON.stringify(json))
  const issues = json.issue as readonly { severity: string; code: string; details: { coding?: { code: string }[] } }[]
  return issues.map(({ severity, code, details }) => `${severity} ${code} ${details.coding?.[0]?.code ?? ''}`.trim())
}

export function codesOf(asked: Asked): readonly string[] {
  return issuesOf(asked).map(issue => issue.split(' ')[1]!)
}
