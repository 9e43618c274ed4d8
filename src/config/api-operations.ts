/** The operations of an API, wherever they are declared: what may stand in them, and which of them are one. */
import { isTemplateFault, type PathTemplate, readTemplate } from '../structure/path-template.ts'
import type { ResourceDefinition } from './api-definition.ts'
import type { Path, YamlFile } from './yaml-file.ts'

type AuthType = ResourceDefinition['authType']

/** Every template and verb is looked up in memory that each reactor has of its own. */
const OPERATIONS_MAX = 20_000
const VERBS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', '*']
/** Of APIs whose operations are no requests: topics of WebSockets, fields of GraphQL. */
const OTHER_VERBS = ['SUBSCRIBE', 'PUBLISH', 'QUERY', 'MUTATION', 'SUBSCRIPTION']
/** In lower case, without what stands between words. */
const AUTH_TYPES: Readonly<Record<string, AuthType>> = {
  none: 'None',
  application: 'Application',
  applicationuser: 'Application User',
  'application&applicationuser': 'Application & Application User',
  any: 'Application & Application User',
}

/** As exports write them. */
const WRITTEN_AUTH_TYPES: ReadonlySet<string> = new Set(Object.values(AUTH_TYPES))

function isAuthType(text: string): text is AuthType {
  return WRITTEN_AUTH_TYPES.has(text)
}

const DEFAULT_AUTH_TYPE: AuthType = 'Application & Application User'
export const DEFAULT_TIER = 'Unlimited'

/** Where an operation is declared. */
interface OperationPlaces {
  readonly template: Path
  readonly verb: Path
}

/** Takes operations one by one, and notes a fault for whatever cannot stand beside the others. */
export class Operations {
  readonly #file: YamlFile
  /** By shape and verb. */
  readonly #known = new Map<string, ResourceDefinition>()
  /** By shape, as they are written first. */
  readonly #templates = new Map<string, string>()
  #count = 0
  /** There were more than anybody has; no other is taken. */
  isFull = false
  #hasWarned = false

  constructor(file: YamlFile) {
    this.#file = file
  }

  get all(): readonly ResourceDefinition[] {
    return [...this.#known.values()]
  }

  /** `GET /pets/{}`, of every operation. */
  get keys(): ReadonlySet<string> {
    return new Set(this.#known.keys())
  }

  add(operation: ResourceDefinition, at: OperationPlaces): void {
    if (++this.#count > OPERATIONS_MAX) {
      const remedy = 'use a template with variables, or /*'
      if (!this.isFull) this.#file.object(at.template, undefined, `is more than ${OPERATIONS_MAX} operations`, remedy)
      this.isFull = true
      return
    }
    const verb = operation.verb.toUpperCase()
    if (!this.#takesVerb(verb, operation.verb, at)) return
    const read = readTemplate(operation.template)
    if (isTemplateFault(read)) {
      this.#file.object(at.template, operation.template, read.expected, read.remedy)
      return
    }
    const shape = shapeOf(read)
    const key = `${verb} ${shape}`
    if (this.#known.has(key)) {
      const expected = `${verb} ${this.#templates.get(shape)} is there already`
      this.#file.object(at.template, operation.template, expected, 'names of variables make no difference; drop one')
      return
    }
    const template = this.#templates.get(shape) ?? operation.template
    this.#templates.set(shape, template)
    this.#known.set(key, { ...operation, verb, template })
  }

  #takesVerb(verb: string, written: string, at: OperationPlaces): boolean {
    if (VERBS.includes(verb)) return true
    if (OTHER_VERBS.includes(verb)) {
      if (this.#hasWarned) return false
      this.#hasWarned = true
      this.#file.warn(at.verb, written, 'is no HTTP method, and not acted on', 'only requests are matched')
      return false
    }
    const remedy = verb === 'TRACE' ? 'a gateway answers TRACE itself or not at all: drop it' : 'drop it'
    this.#file.object(at.verb, written, `expected ${VERBS.join(', ')}`, remedy)
    return false
  }
}

/** Without the names of variables: templates of the same shape are the same. */
function shapeOf({ segments, isOpen, endsInSlash }: PathTemplate): string {
  const fixed = segments.map(pieces => `/${pieces.join('{}')}`).join('')
  return `${fixed}${isOpen ? '/*' : endsInSlash ? '/' : ''}` || '/'
}

/** Exports spell it in words; `path` is where it stands. */
export function authTypeIn(file: YamlFile, path: Path): AuthType {
  const written = file.optional(path)
  if (written === '') return DEFAULT_AUTH_TYPE
  if (isAuthType(written)) return written
  const bare = written.toLowerCase().replaceAll(/[\s_-]/g, '')
  if (Object.hasOwn(AUTH_TYPES, bare)) return AUTH_TYPES[bare]!
  const expected = 'expected None, Application, Application User or Application & Application User'
  file.object(path, written, expected, 'leave it out for the last')
  return DEFAULT_AUTH_TYPE
}

/** One as exports write it; undefined where there may be more to say of it. Thousands are read at a start. */
function plainOperation(value: unknown): ResourceDefinition | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { target, verb, authType, throttlingPolicy, scopes } = value as Readonly<Record<string, unknown>>
  if (typeof target !== 'string' || typeof verb !== 'string' || typeof authType !== 'string') return undefined
  if (!isAuthType(authType) || typeof throttlingPolicy !== 'string' || throttlingPolicy.trim() === '') return undefined
  if (!Array.isArray(scopes) || !scopes.every(scope => typeof scope === 'string')) return undefined
  return { template: target, verb: verb.trim(), authType, tier: throttlingPolicy.trim(), scopes }
}

/** `data.operations` of a project; undefined where it says nothing of them. */
export function readOperations(file: YamlFile): Operations | undefined {
  const list = ['data', 'operations']
  const length = file.lengthOf(list)
  if (length === undefined) {
    if (file.has(list)) file.object(list, undefined, 'expected a list', 'write each operation behind a "-"')
    return undefined
  }
  const operations = new Operations(file)
  for (let item = 0; item < length && !operations.isFull; item++) {
    const at = [...list, item]
    const places = { template: [...at, 'target'], verb: [...at, 'verb'] }
    const plain = plainOperation(file.value(at))
    if (plain !== undefined) {
      operations.add(plain, places)
      continue
    }
    const template = file.text(places.template)
    const verb = file.text(places.verb)
    const authType = authTypeIn(file, [...at, 'authType'])
    const tier = file.optional([...at, 'throttlingPolicy']) || DEFAULT_TIER
    const scopes = file.texts([...at, 'scopes'])
    if (template === undefined || verb === undefined) continue
    operations.add({ template, verb: verb.trim(), authType, tier, scopes }, places)
  }
  return length === 0 ? undefined : operations
}
