/**
 * Reads the rules of an OpenAPI document about messages of its API (`enableSchemaValidation`): parameters, bodies,
 * responses. Every schema is compiled once here, so that a document that workers could not use refuses the project.
 */
import {
  type ApiContract,
  type ContentContract,
  type OperationContract,
  type ParameterContract,
  styleNamed,
} from '../mediation/openapi/api-contract.ts'
import { ContractSchemas as CompiledSchemas } from '../mediation/openapi/contract-schemas.ts'
import type { ResourceDefinition } from './api-definition.ts'
import { ContractSchemas } from './contract-schemas.ts'
import { isObject, type OpenApiDocument } from './open-api-document.ts'
import type { Path } from './yaml-file.ts'

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch']
/** Media types whose responses may never end. */
const ENDLESS = ['text/event-stream', 'application/x-ndjson', 'multipart/x-mixed-replace']
const DEFAULT_STYLES = { path: 'simple', query: 'form', header: 'simple', cookie: 'form' } as const
const COLLECTIONS = {
  csv: { style: 'form', explodes: false },
  multi: { style: 'form', explodes: true },
  ssv: { style: 'spaceDelimited', explodes: false },
  pipes: { style: 'pipeDelimited', explodes: false },
  tsv: { style: 'tabs', explodes: false },
} as const
const FORMS = ['application/x-www-form-urlencoded', 'multipart/form-data']

/**
 * Reads a document. Errors go to its file. Every schema is compiled once, so that the first request meets no error; the
 * first schema that cannot be compiled is reported with its place.
 */
export function readContract(document: OpenApiDocument): ApiContract {
  const before = document.file.errors.length
  const reader = new ContractReader(document)
  const contract = reader.read()
  if (document.file.errors.length === before) reader.check(contract)
  return contract
}

/** Operations of an API, as `VERB template`, whose responses are not validated because they may never end. */
export function endlessOperations({ operations }: ApiContract, resources: readonly ResourceDefinition[]): string[] {
  const endless = operations.filter(({ responses }) => responses === null)
  const isEndless = ({ verb, template }: ResourceDefinition): boolean => {
    const own = operations.find(operation => operation.template === template && operation.method === verb)
    return own === undefined ? endless.length > 0 : own.responses === null
  }
  return resources.filter(isEndless).map(({ verb, template }) => `${verb} ${template}`)
}

class ContractReader {
  readonly #document: OpenApiDocument
  readonly #schemas: ContractSchemas

  constructor(document: OpenApiDocument) {
    this.#document = document
    this.#schemas = new ContractSchemas(document)
  }

  read(): ApiContract {
    const { file } = this.#document
    const operations = file.keys(['paths']).flatMap(template => {
      const item = template.startsWith('x-') ? undefined : this.#document.objectAt(['paths', template])
      if (item === undefined) return []
      return METHODS.filter(method => isObject(item.value[method])).map(method =>
        this.#operation(template, method, item.path),
      )
    })
    return { operations, schemas: this.#schemas.schemas }
  }

  check({ schemas }: ApiContract): void {
    const compiled = new CompiledSchemas(schemas)
    for (const name of Object.keys(schemas)) {
      try {
        compiled.compile(name)
      } catch (error) {
        // The rest of the message quotes the schema.
        const reason = (error as Error).message.replace(/["'{[][\s\S]*$/, '').trim()
        const place = this.#schemas.places.get(name)!
        this.#document.file.error(place, undefined, `cannot be compiled: ${reason}`, 'correct the schema')
        return
      }
    }
  }

  #operation(template: string, method: string, item: Path): OperationContract {
    const at = [...item, method]
    const ofItem = this.#parameters([...item, 'parameters'])
    const own = this.#parameters([...at, 'parameters'])
    const all = new Map([...ofItem, ...own])
    const parameters = [...all.values()].flatMap(path => this.#parameter(path) ?? [])
    return {
      ...{ method: method.toUpperCase(), template, parameters },
      body: this.#document.version === '2.0' ? this.#body2(at, [...all.values()]) : this.#body(at),
      responses: this.#responses(at),
    }
  }

  /** Places of the parameters in a list, by place and name: those of an operation win over those of its path. */
  #parameters(list: Path): readonly (readonly [string, Path])[] {
    const length = this.#document.file.lengthOf(list) ?? 0
    return Array.from({ length }, (_, at) => this.#document.objectAt([...list, at])).flatMap(found =>
      found === undefined ? [] : [[`${found.value.in as string} ${found.value.name as string}`, found.path] as const],
    )
  }

  /** Returns undefined for bodies of OpenAPI 2.0. */
  #parameter(path: Path): ParameterContract | undefined {
    const { name, in: place, required, style, explode, content } = this.#schemas.typed(path) as Record<string, unknown>
    if (place !== 'path' && place !== 'query' && place !== 'header' && place !== 'cookie') return undefined
    const own = { name: String(name), place, isRequired: required === true || place === 'path' } as const
    if (this.#document.version === '2.0')
      return { ...own, ...this.#collection(path), schema: this.#schemaAt(path, 'request') }
    if (isObject(content)) {
      const [type = ''] = Object.keys(content)
      const schema = this.#schemaAt([...path, 'content', type, 'schema'], 'request')
      const isJson = /[/+]json$/i.test(type)
      return { ...own, style: isJson ? 'json' : 'simple', explodes: false, schema: isJson ? schema : '' }
    }
    const styled = typeof style === 'string' ? styleNamed(style) : DEFAULT_STYLES[place]
    const schema = styled === undefined ? '' : this.#schemaAt([...path, 'schema'], 'request')
    const known = styled ?? DEFAULT_STYLES[place]
    return { ...own, style: known, explodes: typeof explode === 'boolean' ? explode : known === 'form', schema }
  }

  #collection(path: Path): Pick<ParameterContract, 'style' | 'explodes'> {
    const { collectionFormat: format } = this.#schemas.typed(path) as Record<string, unknown>
    return COLLECTIONS[Object.hasOwn(COLLECTIONS, String(format)) ? (format as keyof typeof COLLECTIONS) : 'csv']
  }

  /** Returns '' where there is none. */
  #schemaAt(path: Path, direction: 'request' | 'response'): string {
    return this.#schemas.typed(path) === undefined ? '' : this.#schemas.nameOf(path, direction)
  }

  #body(at: Path): OperationContract['body'] {
    const found = this.#document.objectAt([...at, 'requestBody'])
    if (found === undefined) return null
    const isRequired = String(found.value.required) === 'true'
    return { isRequired, content: this.#content([...found.path, 'content'], 'request') }
  }

  #content(path: Path, direction: 'request' | 'response'): ContentContract {
    const types = this.#document.file.keys(path)
    return Object.fromEntries(
      types.map(type => [mediaType(type), this.#schemaAt([...path, type, 'schema'], direction)] as const),
    )
  }

  /** The parameters `body` and `formData` of OpenAPI 2.0. */
  #body2(at: Path, parameters: readonly Path[]): OperationContract['body'] {
    const typed = parameters.map(path => ({ path, ...(this.#schemas.typed(path) as Record<string, unknown>) }))
    const consumes = this.#types(at, 'consumes')
    const body = typed.find(each => (each as Record<string, unknown>).in === 'body') as
      | ({ readonly path: Path } & Record<string, unknown>)
      | undefined
    if (body !== undefined) {
      const schema = this.#schemaAt([...body.path, 'schema'], 'request')
      const types = consumes.length === 0 ? ['application/json'] : consumes
      return { isRequired: body.required === true, content: Object.fromEntries(types.map(type => [type, schema])) }
    }
    const fields = typed.filter(each => (each as Record<string, unknown>).in === 'formData') as readonly Record<
      string,
      unknown
    >[]
    if (fields.length === 0) return null
    const required = fields.filter(field => field.required === true).map(field => String(field.name))
    const properties = fields.map(field => [
      String(field.name),
      { $ref: `#/$defs/${this.#schemas.nameOf(field.path as Path, 'request')}` },
    ])
    const rules = { type: 'object', properties: Object.fromEntries(properties) as unknown }
    const schema = this.#schemas.add(required.length === 0 ? rules : { ...rules, required }, at)
    const types = consumes.length === 0 ? FORMS : consumes
    return { isRequired: required.length > 0, content: Object.fromEntries(types.map(type => [type, schema])) }
  }

  /** `consumes` or `produces` of an operation, or else of the document (OpenAPI 2.0). */
  #types(at: Path, name: 'consumes' | 'produces'): readonly string[] {
    const { file } = this.#document
    const path = file.has([...at, name]) ? [...at, name] : [name]
    return file.has(path) ? file.texts(path).map(mediaType) : []
  }

  #responses(at: Path): OperationContract['responses'] {
    const statuses = this.#document.file.keys([...at, 'responses']).filter(status => !status.startsWith('x-'))
    const all = statuses.map(status => [status.replace(/xx$/i, 'XX'), this.#response(at, status)] as const)
    const isEndless = all.some(([, content]) => Object.keys(content).some(type => ENDLESS.includes(type)))
    return isEndless || all.length === 0 ? null : Object.fromEntries(all)
  }

  #response(at: Path, status: string): ContentContract {
    const found = this.#document.objectAt([...at, 'responses', status])
    if (found === undefined) return {}
    if (this.#document.version !== '2.0') return this.#content([...found.path, 'content'], 'response')
    if (found.value.schema === undefined) return {}
    const schema = this.#schemaAt([...found.path, 'schema'], 'response')
    const produces = this.#types(at, 'produces')
    const types = produces.length === 0 ? ['application/json'] : produces
    return Object.fromEntries(types.map(type => [type, schema]))
  }
}

function mediaType(type: string): string {
  return type.split(';', 1)[0]!.trim().toLowerCase()
}
