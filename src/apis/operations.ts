/**
 * Reads the operations of an API, declared by `data.operations` of a project or by the paths of an OpenAPI document.
 * Operations whose templates differ in variable names only are duplicates, which is an error.
 */
import { isTemplateError, type PathTemplate, parseTemplate } from '../route/path-template.ts'
import type { ResourceDefinition } from './api-definition.ts'
import { MemberCheck } from './known-members.ts'
import { isObject, type OpenApiDocument } from './open-api-document.ts'
import { DOCUMENT_EXTENSIONS, FLOW_EXTENSIONS, OPERATION_EXTENSIONS } from './project-members.ts'
import type { Path, YamlFile } from './yaml-file.ts'

type AuthType = ResourceDefinition['authType']

/** Each reactor keeps every template and verb in memory of its own. */
const OPERATIONS_MAX = 20_000
const VERBS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', '*']
/** A client opens a topic by a GET, and both directions of a topic share its connection. */
const TOPIC_VERBS = ['SUBSCRIBE', 'PUBLISH']
/** Types of APIs, in upper case, whose operations are topics. */
const TOPIC_TYPES = ['WS', 'SSE']
/** Operations that are no HTTP requests: topics of APIs of other types, operations of GraphQL APIs. */
const OTHER_VERBS = [...TOPIC_VERBS, 'QUERY', 'MUTATION', 'SUBSCRIPTION']
/** Keys in lower case, without separators. */
const AUTH_TYPES: Readonly<Record<string, AuthType>> = {
  none: 'None',
  application: 'Application',
  applicationuser: 'Application User',
  'application&applicationuser': 'Application & Application User',
  any: 'Application & Application User',
}
/** The spellings of exports. */
const EXPORTED_AUTH_TYPES: ReadonlySet<string> = new Set(Object.values(AUTH_TYPES))
const DEFAULT_AUTH_TYPE: AuthType = 'Application & Application User'
const DEFAULT_TIER = 'Unlimited'

/** Collects operations, with an error for each that is invalid or declared twice. */
export class Operations {
  readonly #file: YamlFile
  /** By verb and shape. */
  readonly #known = new Map<string, ResourceDefinition>()
  /** Shape -> its first spelling. */
  readonly #templates = new Map<string, string>()
  #count = 0
  /** True once the limit is passed; further operations are ignored. */
  isFull = false
  readonly #hasTopics: boolean
  #hasWarned = false

  constructor(file: YamlFile, hasTopics = false) {
    this.#file = file
    this.#hasTopics = hasTopics
  }

  get all(): readonly ResourceDefinition[] {
    return [...this.#known.values()]
  }

  /** `GET /pets/{}` for each operation. */
  get keys(): ReadonlySet<string> {
    return new Set(this.#known.keys())
  }

  /** `VERB template` of the operation, in the spelling of `all`. */
  keyOf(written: string, target: string): string {
    const { verb, template } = this.#resourceOf(written, target)
    const parsed = parseTemplate(template)
    const known = isTemplateError(parsed) ? undefined : this.#templates.get(shapeOf(parsed))
    return `${verb} ${known ?? template}`
  }

  /** Verb and template of the requests that an operation stands for. */
  #resourceOf(written: string, target: string): Pick<ResourceDefinition, 'verb' | 'template'> {
    const verb = written.toUpperCase()
    if (!this.#hasTopics || !TOPIC_VERBS.includes(verb)) return { verb, template: target }
    return { verb: 'GET', template: target.startsWith('/') ? target : `/${target}` }
  }

  /** `at`: where template and verb are declared. */
  add(operation: ResourceDefinition, at: Readonly<Record<'template' | 'verb', Path>>): void {
    if (++this.#count > OPERATIONS_MAX) {
      const hint = 'use a template with variables, or /*'
      if (!this.isFull) this.#file.error(at.template, undefined, `is more than ${OPERATIONS_MAX} operations`, hint)
      this.isFull = true
      return
    }
    const { verb, template: written } = this.#resourceOf(operation.verb, operation.template)
    if (!this.#acceptsVerb(verb, operation.verb, at.verb)) return
    const parsed = parseTemplate(written)
    if (isTemplateError(parsed)) {
      this.#file.error(at.template, operation.template, parsed.expected, parsed.hint)
      return
    }
    const shape = shapeOf(parsed)
    const key = `${verb} ${shape}`
    const known = this.#known.get(key)
    if (known !== undefined) {
      if (this.#hasTopics && hasSameAccess(known, operation)) return
      const expected = `${verb} ${known.template} is declared already`
      const hint = this.#hasTopics ? BOTH_DIRECTIONS : 'variable names make no difference; remove one'
      this.#file.error(at.template, operation.template, expected, hint)
      return
    }
    const template = this.#templates.get(shape) ?? written
    this.#templates.set(shape, template)
    this.#known.set(key, { ...operation, verb, template })
  }

  #acceptsVerb(verb: string, written: string, at: Path): boolean {
    if (VERBS.includes(verb)) return true
    if (OTHER_VERBS.includes(verb)) {
      if (!this.#hasWarned) this.#file.warn(at, written, 'is no HTTP method and has no effect', 'only requests match')
      this.#hasWarned = true
      return false
    }
    const hint = verb === 'TRACE' ? 'remove it: the gateway never forwards TRACE' : 'remove it'
    this.#file.error(at, written, `expected ${VERBS.join(', ')}`, hint)
    return false
  }
}

const BOTH_DIRECTIONS = 'one connection carries both directions: give both the same authType, policy and scopes'

function hasSameAccess(one: ResourceDefinition, other: ResourceDefinition): boolean {
  const text = ({ authType, tier, scopes }: ResourceDefinition) => JSON.stringify([authType, tier, [...scopes].sort()])
  return text(one) === text(other)
}

/** The template without variable names. */
function shapeOf({ segments, isOpen, endsInSlash }: PathTemplate): string {
  const fixed = segments.map(pieces => `/${pieces.join('{}')}`).join('')
  return `${fixed}${isOpen ? '/*' : endsInSlash ? '/' : ''}` || '/'
}

function isExportedAuthType(text: string): text is AuthType {
  return EXPORTED_AUTH_TYPES.has(text)
}

function readAuthType(file: YamlFile, path: Path): AuthType {
  const written = file.optional(path)
  if (written === '') return DEFAULT_AUTH_TYPE
  if (isExportedAuthType(written)) return written
  const bare = written.toLowerCase().replaceAll(/[\s_-]/g, '')
  if (Object.hasOwn(AUTH_TYPES, bare)) return AUTH_TYPES[bare]!
  const expected = 'expected None, Application, Application User or Application & Application User'
  file.error(path, written, expected, 'leave it out for the last')
  return DEFAULT_AUTH_TYPE
}

// ---- projects -------------------------------------------------------------------------------------------------------

/** `data.operations` of a project; undefined if the project declares none. */
export function readOperations(file: YamlFile): Operations | undefined {
  const list = ['data', 'operations']
  const length = file.lengthOf(list)
  if (length === undefined) {
    if (file.has(list)) file.error(list, undefined, 'expected a list', 'begin each operation with "-"')
    return undefined
  }
  const type = file.optional(['data', 'type']).toUpperCase()
  const operations = new Operations(file, TOPIC_TYPES.includes(type))
  for (let item = 0; item < length && !operations.isFull; item++) {
    const at = [...list, item]
    const operation = readOperation(file, at)
    if (operation !== undefined) operations.add(operation, { template: [...at, 'target'], verb: [...at, 'verb'] })
  }
  return length === 0 ? undefined : operations
}

/** Undefined after an error. */
function readOperation(file: YamlFile, at: Path): ResourceDefinition | undefined {
  const plain = plainOperation(file.value(at))
  if (plain !== undefined) return plain
  const template = file.text([...at, 'target'])
  const verb = file.text([...at, 'verb'])
  const authType = readAuthType(file, [...at, 'authType'])
  const tier = file.optional([...at, 'throttlingPolicy']) || DEFAULT_TIER
  const scopes = file.texts([...at, 'scopes'])
  if (template === undefined || verb === undefined) return undefined
  return { template, verb: verb.trim(), authType, tier, scopes }
}

const GRAPHQL_VERBS = ['QUERY', 'MUTATION', 'SUBSCRIPTION']

/** The operations of a GraphQL project: fields of its root types. */
export function readGraphqlOperations(file: YamlFile): readonly ResourceDefinition[] {
  const list = ['data', 'operations']
  const found = new Map<string, ResourceDefinition>()
  const length = Math.min(file.lengthOf(list) ?? 0, OPERATIONS_MAX)
  for (let item = 0; item < length; item++) {
    const at = [...list, item]
    const operation = readOperation(file, at)
    if (operation === undefined) continue
    const verb = operation.verb.toUpperCase()
    const template = operation.template.trim().replace(/^\//, '')
    if (!GRAPHQL_VERBS.includes(verb)) {
      file.error(
        [...at, 'verb'],
        operation.verb,
        `expected ${GRAPHQL_VERBS.join(', ')}`,
        'the type of the API is GRAPHQL',
      )
    } else if (!/^[_A-Za-z]\w*$/.test(template)) {
      file.error([...at, 'target'], operation.template, 'is no name of a field', 'name a field of the root type')
    } else found.set(`${verb} ${template}`, { ...operation, verb, template })
  }
  if (found.size === 0)
    file.error(list, undefined, 'there is no operation', 'declare the fields that clients may ask for')
  return [...found.values()]
}

/**
 * An operation spelled exactly as exports spell it, undefined for any other. A start reads thousands of operations, and
 * this shortcut skips the checks one by one.
 */
function plainOperation(value: unknown): ResourceDefinition | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { target, verb, authType, throttlingPolicy, scopes } = value as Readonly<Record<string, unknown>>
  if (typeof target !== 'string' || typeof verb !== 'string' || typeof authType !== 'string') return undefined
  if (!isExportedAuthType(authType) || typeof throttlingPolicy !== 'string') return undefined
  const tier = throttlingPolicy.trim()
  if (tier === '' || !Array.isArray(scopes) || !scopes.every(scope => typeof scope === 'string')) return undefined
  return { template: target, verb: verb.trim(), authType, tier, scopes }
}

// ---- OpenAPI documents ----------------------------------------------------------------------------------------------

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']
const SECURITY_OFF = 'x-wso2-disable-security'

/** The operations of a document that decides alone: an empty list is an error, because it would allow every request. */
export function requiredOperations(document: OpenApiDocument): Operations['all'] {
  const { file } = document
  const before = file.errors.length
  const { all } = documentOperations(document)
  if (all.length === 0 && file.errors.length === before) {
    file.error(['paths'], undefined, 'there is no operation in it', 'add one; /* is every path')
  }
  return all
}

/** True if document and project declare the same operations in the same spelling. */
export function hasSameOperations({ root: { paths } }: OpenApiDocument, { all }: Operations): boolean {
  if (!isObject(paths)) return false
  let left = all.length
  for (const { template, verb } of all) {
    const item = Object.hasOwn(paths, template) ? paths[template] : undefined
    if (!isObject(item) || !isObject(item[verb.toLowerCase()])) return false
  }
  for (const item of Object.values(paths)) for (const method of METHODS) if (isObject(item) && method in item) left--
  return left === 0
}

/** `decides`: false if the operations of the project hold in place of these. */
export function documentOperations(document: OpenApiDocument, decides = true): Operations {
  const { file, root } = document
  const operations = new Operations(file)
  const oauthSchemes = oauthSchemesOf(document)
  const paths = isObject(root.paths) ? Object.keys(root.paths) : []
  const check = new MemberCheck(file)
  for (const template of paths) {
    const item = template.startsWith('x-') ? undefined : document.objectAt(['paths', template])
    if (item === undefined) continue
    const warn = (at: Path): void => {
      check.extensions(OPERATION_EXTENSIONS, at)
      warnOfServers(file, at)
    }
    if (decides) warn(item.path)
    for (const method of METHODS) {
      if (operations.isFull) return operations
      if (!isObject(item.value[method])) continue
      const at = [...item.path, method]
      if (decides) warn(at)
      // Errors name the path of the document, even if the path item is a reference.
      const declaredAt = { template: ['paths', template], verb: ['paths', template, method] }
      operations.add({ template, verb: method, ...readAccess(document, item.path, at, oauthSchemes) }, declaredAt)
    }
  }
  return operations
}

/** Checks the extensions of the document itself and of its OAuth2 flows. */
export function checkExtensions({ file }: OpenApiDocument): void {
  const check = new MemberCheck(file)
  check.extensions(DOCUMENT_EXTENSIONS)
  const schemes = ['components', 'securitySchemes']
  for (const scheme of file.keys(schemes)) {
    const flows = [...schemes, scheme, 'flows']
    for (const flow of file.keys(flows)) check.extensions(FLOW_EXTENSIONS, [...flows, flow])
  }
}

/** Servers of a path or an operation have no effect. */
function warnOfServers(file: YamlFile, at: Path): void {
  const path = [...at, 'servers']
  if (file.has(path)) file.warn(path, undefined, 'has no effect', 'every operation goes to the endpoints of the API')
}

/**
 * Auth type, tier and scopes of the operation at `at` below the path item `item`. The operation wins over its path, the
 * path over the document. Of the two security extensions the nearer one holds, `x-auth-type` at the same level.
 */
function readAccess(
  document: OpenApiDocument,
  item: Path,
  at: Path,
  oauthSchemes: ReadonlySet<string>,
): Pick<ResourceDefinition, 'authType' | 'tier' | 'scopes'> {
  const { file } = document
  const nearest = (name: string, ...outer: readonly Path[]): Path => {
    return [at, ...outer].map(level => [...level, name]).find(path => file.has(path)) ?? [...at, name]
  }
  const off = nearest(SECURITY_OFF, item, [])
  const type = nearest('x-auth-type', item, [])
  const isOpen = file.flag(off, false) && (off.length > type.length || !file.has(type))
  const scope = nearest('x-scope', item)
  return {
    authType: isOpen ? 'None' : readAuthType(file, type),
    tier: file.optional(nearest('x-throttling-tier', item, [])) || DEFAULT_TIER,
    scopes: file.has(scope)
      ? file.texts(scope).flatMap(text => text.split(/[\s,]+/).filter(Boolean))
      : requiredScopes(file, at, oauthSchemes),
  }
}

/** Union of the scopes of all OAuth2 requirements of the operation, or else of the document. */
function requiredScopes(file: YamlFile, at: Path, oauthSchemes: ReadonlySet<string>): readonly string[] {
  const path = file.has([...at, 'security']) ? [...at, 'security'] : ['security']
  const length = file.lengthOf(path) ?? 0
  const scopes = new Set<string>()
  for (let item = 0; item < length; item++) {
    for (const scheme of oauthSchemes) for (const scope of file.texts([...path, item, scheme])) scopes.add(scope)
  }
  return [...scopes]
}

/** Names of the OAuth2 security schemes. */
function oauthSchemesOf(document: OpenApiDocument): ReadonlySet<string> {
  const at = document.version === '2.0' ? ['securityDefinitions'] : ['components', 'securitySchemes']
  const names = Object.keys(document.objectAt(at)?.value ?? {})
  return new Set(names.filter(name => document.objectAt([...at, name])?.value.type === 'oauth2'))
}
