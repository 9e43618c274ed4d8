/**
 * Which of the APIs this gateway has: those with one of its labels, or with none, under the virtual hosts that they are
 * deployed to; and with which endpoints, by the type of the environments that the labels name.
 */
import { type ApiDefinition, NO_ENDPOINTS } from './api-definition.ts'
import type { Fault } from './fault.ts'

/** An API as its project says, wherever it is deployed. */
export interface DeclaredApi {
  readonly api: ApiDefinition
  readonly deployments: readonly {
    /** Of a gateway; the name of an environment. */
    readonly label: string
    /** '' for every host. */
    readonly host: string
    /** File and line of the host. */
    readonly where: string
  }[]
  /** File and line of its context. */
  readonly where: string
}

/** What the configuration says of this gateway. */
export interface GatewayPlace {
  /** Null: all. */
  readonly labels: ReadonlySet<string> | null
  /** Which keys are taken: of production, of the sandbox. */
  readonly takes: { readonly production: boolean; readonly sandbox: boolean }
  /** Of the environments; null where there are none: then no API has a host of its own. */
  readonly hosts: ReadonlySet<string> | null
}

/** Takes everything. */
export const EVERYWHERE: GatewayPlace = { labels: null, takes: { production: true, sandbox: true }, hosts: null }

/** What becomes of an API here. */
export interface Placement {
  /** Undefined: it is not deployed, which is `leftOut`, or a fault. */
  readonly api: ApiDefinition | undefined
  readonly leftOut: Fault | undefined
  readonly faults: readonly Fault[]
  readonly warnings: readonly Fault[]
}

/** What was made of an API: as long as nothing changes it is one and the same, so that nobody plans it anew. */
interface Made {
  readonly from: string
  readonly api: ApiDefinition
}
const made = new WeakMap<ApiDefinition, Made>()

export function placed({ api, deployments, where }: DeclaredApi, place: GatewayPlace): Placement {
  const { labels, takes, hosts: known } = place
  const here = labels === null ? deployments : deployments.filter(({ label }) => labels.has(label))
  if (deployments.length > 0 && here.length === 0) {
    const expected = `is not deployed here: none of ${listed(deployments)} is a label of this gateway`
    const remedy = `its labels are apim.sync_runtime_artifacts.gateway.gateway_labels = ${[...labels!].join(', ')}`
    const leftOut = { where, key: `API ${api.name} ${api.version}`, given: '', expected, remedy }
    return { api: undefined, leftOut, faults: [], warnings: [] }
  }
  const hosts = known === null || here.some(({ host }) => host === '') ? [] : [...new Set(here.map(({ host }) => host))]
  const endpoints = takes.production ? api.endpoints : NO_ENDPOINTS
  const sandbox = takes.sandbox ? api.sandbox : NO_ENDPOINTS
  if (endpoints.endpoints.length + sandbox.endpoints.length === 0) {
    const type = takes.production ? 'production' : 'sandbox'
    const expected = `has no ${type} endpoint, and this gateway takes ${type} keys only`
    const remedy = 'add one, or leave it to other gateways by its labels'
    const fault = { where, key: `API ${api.name} ${api.version}`, given: '', expected, remedy }
    return { api: undefined, leftOut: undefined, faults: [fault], warnings: [] }
  }
  const keyType = takes.production ? 'PRODUCTION' : 'SANDBOX'
  const strange = here.filter(({ host }) => host !== '' && known?.has(host) === false)
  const warnings = strange.map(({ host, where: line }) => {
    const expected = 'is a host of no environment that is configured'
    const remedy = 'add it as [[apim.gateway.environment.virtual_host]]'
    return { where: line, key: 'deploymentVhost', given: host, expected, remedy }
  })
  return { api: changed(api, { hosts, endpoints, sandbox, keyType }), leftOut: undefined, faults: [], warnings }
}

type Changes = Pick<ApiDefinition, 'hosts' | 'endpoints' | 'sandbox' | 'keyType'>

function changed(api: ApiDefinition, changes: Changes): ApiDefinition {
  const { hosts, endpoints, sandbox, keyType } = changes
  const isSame = hosts.length === 0 && endpoints === api.endpoints && sandbox === api.sandbox
  if (isSame && keyType === api.keyType) return api
  const from = JSON.stringify([hosts, endpoints.endpoints.length, sandbox.endpoints.length, keyType])
  const before = made.get(api)
  if (before?.from === from) return before.api
  const now = { ...api, ...changes }
  made.set(api, { from, api: now })
  return now
}

function listed(deployments: DeclaredApi['deployments']): string {
  return deployments.map(({ label }) => label).join(', ')
}
