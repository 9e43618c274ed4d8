/**
 * Deployment of APIs to gateway environments: which labels and virtual hosts a project names
 * (`deployment_environments.yaml`), which environments this gateway belongs to, and what follows for each API.
 */
import { hostName } from '../http1/host-name.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { Diagnostic } from '../config/diagnostics.ts'
import { type ApiDefinition, type MountedDefinition, NO_ENDPOINTS } from './api-definition.ts'
import { MemberCheck } from './known-members.ts'
import { DEPLOYMENTS_FILE } from './project-members.ts'
import type { Violation, YamlFile } from './yaml-file.ts'

/** An API with the deployments that its project declares. */
export interface DeclaredApi {
  readonly api: ApiDefinition
  /** Empty: deployed to every gateway, under every host. */
  readonly deployments: readonly Deployment[]
  /** File and line of the context. */
  readonly where: string
}

interface Deployment {
  /** Name of a gateway environment. */
  readonly label: string
  /** Virtual host; '' for every host. */
  readonly host: string
  /** File and line of the host. */
  readonly where: string
}

/** Environments of this gateway, as configured. */
export interface GatewayEnvironment {
  /** Labels of this gateway; null for all. */
  readonly labels: ReadonlySet<string> | null
  /** Key types that this gateway accepts. */
  readonly keyTypes: Readonly<Record<'production' | 'sandbox', boolean>>
  /**
   * Host -> all hosts of its virtual host, or of its environment. Null if no environment is configured: then no API is
   * bound to a host.
   */
  readonly hosts: ReadonlyMap<string, readonly string[]> | null
}

/** Accepts every API. */
export const ALL_ENVIRONMENTS: GatewayEnvironment = {
  labels: null,
  keyTypes: { production: true, sandbox: true },
  hosts: null,
}

// ---- what projects declare ------------------------------------------------------------------------------------------

/** RFC 1035 2.3.4 */
const HOST_CHARS_MAX = 253
const HOST = /^(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*$/
const IPV6 = /^\[[0-9a-f:.]+\]$/

/** `deployment_environments.yaml` of a project. */
export function readDeployments(file: YamlFile): readonly Deployment[] {
  if (file.errors.length > 0) return []
  new MemberCheck(file).members(DEPLOYMENTS_FILE)
  const type = file.text(['type'])
  if (type !== undefined && type !== 'deployment_environments') {
    file.error(['type'], type, 'expected deployment_environments', 'write that, or remove the file')
  }
  const length = file.lengthOf(['data'])
  if (length === undefined && file.has(['data'])) file.error(['data'], undefined, 'expected a list', 'begin with "-"')
  return Array.from({ length: length ?? 0 }, (_, item) => {
    const at = ['data', item]
    const label = file.text([...at, 'deploymentEnvironment'])?.trim() ?? ''
    const path = [...at, 'deploymentVhost']
    const given = file.optional(path)
    const host = hostName(given)
    // A port alone would leave an empty name, which stands for every host.
    if (given !== '') file.report(path, given, hostViolation(host))
    return { label, host, where: file.where(path) }
  })
}

function hostViolation(host: string): Violation | undefined {
  if (host.length <= HOST_CHARS_MAX && (HOST.test(host) || IPV6.test(host))) return undefined
  return ['expected a host name', 'for example api.example.com']
}

/** `gatewayEnvironments` and `labels` in `api.yaml` of older exports: labels without a host. */
export function readLabels(file: YamlFile): readonly Deployment[] {
  const lists = ['gatewayEnvironments', 'labels', 'gatewayLabels'].map(name => ['data', name])
  const labels = lists.flatMap(path => (file.has(path) ? file.texts(path) : []))
  return labels.filter(label => label.trim() !== '').map(label => ({ label: label.trim(), host: '', where: '' }))
}

// ---- this gateway ---------------------------------------------------------------------------------------------------

/** The environments named by the labels of this gateway, or all of them; every one may lend an API its hosts. */
export function gatewayEnvironment(configuration: Configuration): GatewayEnvironment {
  const labels = new Set(configuration['apim.sync_runtime_artifacts.gateway'].gateway_labels)
  const environments = configuration['apim.gateway.environment']
  const named = environments.filter(environment => labels.has(environment.name))
  const own = named.length === 0 ? environments : named
  const accepts = (type: 'production' | 'sandbox'): boolean =>
    own.length === 0 || own.some(environment => environment.type === 'hybrid' || environment.type === type)
  return {
    labels,
    keyTypes: { production: accepts('production'), sandbox: accepts('sandbox') },
    hosts: environments.length === 0 ? null : servedHosts(configuration),
  }
}

/** A client may use any of the addresses of a virtual host, so a host stands for all of them. */
function servedHosts(configuration: Configuration): ReadonlyMap<string, readonly string[]> {
  const served = new Map<string, readonly string[]>()
  const rows = [...configuration['apim.gateway.environment'], ...configuration['apim.gateway.environment.virtual_host']]
  for (const row of rows) {
    const addresses = [
      row.https_endpoint,
      row.http_endpoint,
      row.ws_endpoint,
      'wss_endpoint' in row ? row.wss_endpoint : '',
    ]
    const hosts = addresses.flatMap(address => hostName(URL.parse(address)?.hostname ?? '') || [])
    for (const host of hosts) served.set(host, [...new Set([...(served.get(host) ?? []), ...hosts])])
  }
  return served
}

// ---- what follows for an API ----------------------------------------------------------------------------------------

/** Deployment of an API on this gateway. */
export interface Placement {
  /** Undefined if the API is not deployed: `skipped` or `errors` then say why. */
  readonly api: ApiDefinition | undefined
  /** The API belongs to other gateways. */
  readonly skipped: Diagnostic | undefined
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
}

/** The API with the hosts, endpoints and key type that it has on this gateway. */
export function placeApi({ api, deployments, where }: DeclaredApi, environment: GatewayEnvironment): Placement {
  const { labels, keyTypes, hosts: knownHosts } = environment
  const key = `API ${api.name} ${api.version}`
  const here = labels === null ? deployments : deployments.filter(({ label }) => labels.has(label))
  if (deployments.length > 0 && here.length === 0) {
    const names = deployments.map(({ label }) => label).join(', ')
    const expected = `is not deployed here: none of ${names} is a label of this gateway`
    const hint = `its labels are apim.sync_runtime_artifacts.gateway.gateway_labels = ${[...labels!].join(', ')}`
    return { api: undefined, skipped: { where, key, given: '', expected, hint }, errors: [], warnings: [] }
  }
  const unknown = here.filter(({ host }) => host !== '' && knownHosts?.has(host) === false).map(unknownHost)
  const isOnEveryHost = knownHosts === null || here.some(({ host }) => host === '')
  const hosts = isOnEveryHost ? [] : [...new Set(here.flatMap(({ host }) => knownHosts.get(host) ?? []))]
  if (!isOnEveryHost && hosts.length === 0 && unknown.length > 0) {
    return { api: undefined, skipped: undefined, errors: unknown, warnings: [] }
  }
  const endpoints = keyTypes.production ? api.endpoints : NO_ENDPOINTS
  const sandbox = keyTypes.sandbox ? api.sandbox : NO_ENDPOINTS
  const mounted = api.mounted === null ? null : mountedFor(api.mounted, keyTypes)
  if (mounted === null && endpoints.endpoints.length + sandbox.endpoints.length === 0) {
    const type = keyTypes.production ? 'production' : 'sandbox'
    const expected = `has no ${type} endpoint, and this gateway accepts ${type} keys only`
    const hint = 'add one, or deploy the API to other gateways by its labels'
    return { api: undefined, skipped: undefined, errors: [{ where, key, given: '', expected, hint }], warnings: [] }
  }
  const keyType = keyTypes.production ? 'PRODUCTION' : 'SANDBOX'
  return {
    api: adapted(api, { hosts, endpoints, sandbox, mounted, keyType }),
    skipped: undefined,
    errors: [],
    warnings: unknown,
  }
}

/** The same object on a gateway that accepts both key types. */
function mountedFor(mounted: MountedDefinition, keyTypes: GatewayEnvironment['keyTypes']): MountedDefinition {
  return keyTypes.production && keyTypes.sandbox ? mounted : { ...mounted, keyTypes }
}

function unknownHost({ where, host }: Deployment): Diagnostic {
  const expected = 'is the host of no address of a configured environment'
  const hint = 'add it as [[apim.gateway.environment.virtual_host]]'
  return { where, key: 'deploymentVhost', given: host, expected, hint }
}

/** The last adaptation of each definition: the same object again tells planning that nothing has changed. */
const adaptations = new WeakMap<ApiDefinition, { readonly key: string; readonly api: ApiDefinition }>()

function adapted(
  api: ApiDefinition,
  changes: Pick<ApiDefinition, 'hosts' | 'endpoints' | 'sandbox' | 'mounted' | 'keyType'>,
): ApiDefinition {
  const { hosts, endpoints, sandbox, mounted, keyType } = changes
  const isSame = hosts.length === 0 && endpoints === api.endpoints && sandbox === api.sandbox && mounted === api.mounted
  if (isSame && keyType === api.keyType) return api
  const key = JSON.stringify([hosts, endpoints.endpoints.length, sandbox.endpoints.length, mounted?.keyTypes, keyType])
  const before = adaptations.get(api)
  if (before?.key === key) return before.api
  const adaptation = { ...api, ...changes }
  adaptations.set(api, { key, api: adaptation })
  return adaptation
}
