/** Where an API is answered, as its OpenAPI document says: by extensions, else by its servers. */
import { type EndpointsDefinition, NO_ENDPOINTS } from './api-definition.ts'
import { endpointFault } from './api-syntax.ts'
import { type BothEndpoints, ENDPOINTS_MAX, tellOfTooMany } from './endpoint-config.ts'
import { DEFAULT_SETTINGS } from './endpoint-settings.ts'
import type { OpenApiDocument } from './open-api-document.ts'
import type { Path, YamlFile } from './yaml-file.ts'

const KINDS: Readonly<Record<string, EndpointsDefinition['kind']>> = {
  http: 'single',
  https: 'single',
  failover: 'failover',
  load_balance: 'load_balance',
  loadbalance: 'load_balance',
}
/** Best first. */
const SCHEMES = ['https', 'http', 'wss', 'ws']
const REMEDY = 'name the back end in x-wso2-production-endpoints: {urls: [https://backend.example]}'

/** Of the extensions only; nothing where there is none. */
export function extensionEndpoints({ file }: OpenApiDocument): BothEndpoints {
  return {
    endpoints: readExtension(file, 'x-wso2-production-endpoints'),
    sandbox: readExtension(file, 'x-wso2-sandbox-endpoints'),
  }
}

/** One whose back ends nobody has named is answered by the servers of the document. */
export function documentEndpoints(document: OpenApiDocument): BothEndpoints {
  const { file, version } = document
  const both = extensionEndpoints(document)
  const isNamed = file.has(['x-wso2-production-endpoints']) || file.has(['x-wso2-sandbox-endpoints'])
  if (isNamed) return both
  const server = version === '2.0' ? hostOf(file) : serverOf(file)
  return server === undefined ? both : { ...both, endpoints: groupOf(file, [server], 'single') }
}

interface Place {
  readonly url: string
  readonly at: Path
}

function readExtension(file: YamlFile, name: string): EndpointsDefinition {
  if (!file.has([name])) return NO_ENDPOINTS
  const list = [name, 'urls']
  const length = file.lengthOf(list)
  if (length === undefined || length === 0) {
    file.object(list, undefined, 'expected a list of at least one URL', 'write urls: [https://backend.example]')
    return NO_ENDPOINTS
  }
  const type = file.optional([name, 'type']).toLowerCase()
  const kind = type === '' ? 'single' : Object.hasOwn(KINDS, type) ? KINDS[type] : undefined
  if (kind === undefined) file.object([name, 'type'], type, 'expected http, load_balance or failover', 'leave it out')
  const places = Array.from({ length: Math.min(length, ENDPOINTS_MAX + 1) }, (_, item) => {
    const at = [...list, item]
    return { at, url: file.text(at) ?? '' }
  })
  // Several without a word of how are shared between.
  return groupOf(file, places, kind === 'failover' ? kind : places.length > 1 ? 'load_balance' : 'single')
}

function groupOf(file: YamlFile, places: readonly Place[], kind: EndpointsDefinition['kind']): EndpointsDefinition {
  if (places.length > ENDPOINTS_MAX) tellOfTooMany(file, places[0]!.at.slice(0, -1))
  for (const { url, at } of places) {
    file.objectAs(at, url, endpointFault(url))
  }
  const endpoints = places.map(({ url }) => ({ url, settings: DEFAULT_SETTINGS }))
  return { kind, algorithm: 'round_robin', failsOver: kind !== 'single', endpoints }
}

/** OpenAPI 2.0: schemes, host and basePath. Without schemes it is https. */
function hostOf(file: YamlFile): Place | undefined {
  const at = ['host']
  const host = file.optional(at)
  if (host === '') {
    file.object(at, undefined, 'there is no back end', REMEDY)
    return undefined
  }
  const given = file.texts(['schemes'])
  const scheme = given.length === 0 ? 'https' : SCHEMES.find(known => given.includes(known))
  if (scheme === undefined) file.object(['schemes'], given[0], `expected ${SCHEMES.join(', ')}`, REMEDY)
  return { url: `${scheme ?? 'https'}://${host}${file.optional(['basePath'])}`.replace(/\/+$/, ''), at }
}

/** OpenAPI 3: the first server; others are other places of the same API. */
function serverOf(file: YamlFile): Place | undefined {
  const at = ['servers', 0, 'url']
  const url = firstServer(file)
  if (url === '') {
    file.object(['servers'], undefined, 'there is no back end', REMEDY)
    return undefined
  }
  if (/^[a-z][a-z0-9+.-]*:/i.test(url)) return { url: url.replace(/\/+$/, ''), at }
  // Relative to where the document was found, which was no server here.
  file.object(at, url, 'is relative: it does not say which server', `write a whole URL, or ${REMEDY}`)
  return undefined
}

/** With its variables filled in by their defaults; '' for none. */
function firstServer(file: YamlFile): string {
  const server = ['servers', 0]
  const url = file.has([...server, 'url']) ? file.optional([...server, 'url']) : ''
  return url.replace(/\{([^{}]{1,64})\}/g, (whole, name: string) => {
    const path = [...server, 'variables', name, 'default']
    return file.has(path) ? file.optional(path) : whole
  })
}

/** The path of the back end, as clients of the document know it; '' for none. */
export function basePathOf({ file, version }: OpenApiDocument): string {
  if (version === '2.0') return file.optional(['basePath'])
  const [path = ''] = /^[^?#]*/.exec(firstServer(file).replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')) ?? []
  return path
}
