/** The endpoints of an API that an OpenAPI document declares: extensions, servers, or host and base path. */
import {
  DEFAULT_ENDPOINT_SETTINGS,
  type EndpointsDefinition,
  LONE_ENDPOINT_SETTINGS,
  NO_ENDPOINTS,
} from './api-definition.ts'
import type { OpenApiDocument } from './open-api-document.ts'
import type { Path, YamlFile } from './yaml-file.ts'
import { urlViolation } from './endpoint-url.ts'
import { type EndpointsByKeyType, ENDPOINTS_MAX, refuseTooMany } from './endpoints.ts'

type Kind = EndpointsDefinition['kind']

/** Types of the endpoint extensions. */
const EXTENSION_KINDS: Readonly<Record<string, Kind>> = {
  http: 'single',
  https: 'single',
  failover: 'failover',
  load_balance: 'load_balance',
  loadbalance: 'load_balance',
}
/** In the order of preference. */
const URL_SCHEMES = ['https', 'http', 'wss', 'ws']
const NAME_BACKEND = 'name the backend in x-wso2-production-endpoints: {urls: [https://backend.example]}'
const URL_START = /^[a-z][a-z0-9+.-]*:/i
const SERVERS_MAX = 100

/** The endpoints of the extensions alone. */
export function extensionEndpoints({ file }: OpenApiDocument): EndpointsByKeyType {
  return {
    endpoints: readExtension(file, 'x-wso2-production-endpoints'),
    sandbox: readExtension(file, 'x-wso2-sandbox-endpoints'),
  }
}

/** The endpoints of the extensions, or the server of the document if it has no extension. */
export function documentEndpoints(document: OpenApiDocument): EndpointsByKeyType {
  const { file, version } = document
  const both = extensionEndpoints(document)
  if (file.has(['x-wso2-production-endpoints']) || file.has(['x-wso2-sandbox-endpoints'])) return both
  const server = version === '2.0' ? readHost(file) : readServer(file)
  return server === undefined ? both : { ...both, endpoints: groupOf(file, [server], 'single') }
}

interface DeclaredUrl {
  readonly url: string
  readonly at: Path
}

function readExtension(file: YamlFile, name: string): EndpointsDefinition {
  if (!file.has([name])) return NO_ENDPOINTS
  const list = [name, 'urls']
  const length = file.lengthOf(list)
  if (length === undefined || length === 0) {
    file.error(list, undefined, 'expected a list of at least one URL', 'write urls: [https://backend.example]')
    return NO_ENDPOINTS
  }
  const type = file.optional([name, 'type']).toLowerCase()
  const kind = type === '' ? 'single' : Object.hasOwn(EXTENSION_KINDS, type) ? EXTENSION_KINDS[type] : undefined
  if (kind === undefined) file.error([name, 'type'], type, 'expected http, load_balance or failover', 'leave it out')
  const urls = Array.from({ length: Math.min(length, ENDPOINTS_MAX + 1) }, (_, item) => {
    const at = [...list, item]
    return { at, url: file.text(at) ?? '' }
  })
  // Several URLs without failover share the load, whatever the type says.
  return groupOf(file, urls, kind === 'failover' ? kind : urls.length > 1 ? 'load_balance' : 'single')
}

function groupOf(file: YamlFile, urls: readonly DeclaredUrl[], kind: Kind): EndpointsDefinition {
  if (urls.length > ENDPOINTS_MAX) refuseTooMany(file, urls[0]!.at.slice(0, -1))
  for (const { url, at } of urls) file.report(at, url, urlViolation(url))
  const settings = kind === 'single' ? LONE_ENDPOINT_SETTINGS : DEFAULT_ENDPOINT_SETTINGS
  const endpoints = urls.map(({ url }) => ({ url, settings }))
  return { kind, algorithm: 'round_robin', failsOver: kind !== 'single', endpoints }
}

/** OpenAPI 2.0: `schemes` (https if absent), `host` and `basePath`. */
function readHost(file: YamlFile): DeclaredUrl | undefined {
  const at = ['host']
  const host = file.optional(at)
  if (host === '') {
    file.error(at, undefined, 'there is no backend', NAME_BACKEND)
    return undefined
  }
  const given = file.texts(['schemes'])
  const scheme = given.length === 0 ? 'https' : URL_SCHEMES.find(known => given.includes(known))
  if (scheme === undefined) file.error(['schemes'], given[0], `expected ${URL_SCHEMES.join(', ')}`, NAME_BACKEND)
  return { url: `${scheme ?? 'https'}://${host}${file.optional(['basePath'])}`.replace(/\/+$/, ''), at }
}

/**
 * OpenAPI 3: the first server with a host, because further servers are other instances of the same API. A relative
 * server is relative to the URL of the document, and a file has none.
 */
function readServer(file: YamlFile): DeclaredUrl | undefined {
  const count = Math.min(file.lengthOf(['servers']) ?? 0, SERVERS_MAX)
  for (let item = 0; item < count; item++) {
    const url = serverUrl(file, item)
    if (URL_START.test(url)) return { url: url.replace(/\/+$/, ''), at: ['servers', item, 'url'] }
  }
  const relative = serverUrl(file, 0)
  if (relative === '') file.error(['servers'], undefined, 'there is no backend', NAME_BACKEND)
  else {
    const hint = `write a whole URL, or ${NAME_BACKEND}`
    file.error(['servers', 0, 'url'], relative, 'is relative and names no host', hint)
  }
  return undefined
}

/** URL of a server with the defaults of its variables; '' if there is none. */
function serverUrl(file: YamlFile, item: number): string {
  const server = ['servers', item]
  const url = file.has([...server, 'url']) ? file.optional([...server, 'url']) : ''
  return url.replace(/\{([^{}]{1,64})\}/g, (whole, name: string) => {
    const path = [...server, 'variables', name, 'default']
    return file.has(path) ? file.optional(path) : whole
  })
}

/** The path of the backend that clients of the document use; '' for none. */
export function basePathOf({ file, version }: OpenApiDocument): string {
  if (version === '2.0') return file.optional(['basePath'])
  const [path = ''] = /^[^?#]*/.exec(serverUrl(file, 0).replace(/^(?:[a-z][a-z0-9+.-]*:)?\/\/[^/?#]*/i, '')) ?? []
  return path === '' || path.startsWith('/') ? path : `/${path.replace(/^(?:\.\/)+/, '')}`
}
