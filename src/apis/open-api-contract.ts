/**
 * Reads the rules of an OpenAPI document about messages of its API (`enableSchemaValidation`): parameters, bodies,
 * responses. Every schema is compiled once here, so that a document that workers could not use refuses the project.
 */
import {
  type ApiContract,
  type ContentContract,
  type FieldContract,
  type MediaContract,
  type OperationContract,
  type ParameterContract,
  type ResponseContract,
  styleNamed,
  type ValueStyle,
} from '../mediation/openapi/api-contract.ts'
import { ContractSchemas as CompiledSchemas } from '../mediation/openapi/contract-schemas.ts'
import type { ResourceDefinition } from './api-definition.ts'
import { ContractSchemas } from './contract-schemas.ts'
import type { Direction } from './hidden-properties.ts'
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
/** Keywords of an encoding that choose a style (OpenAPI 3.1.1 4.8.15.1.2). */
const STYLING = ['style', 'explode', 'allowReserved']
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
    const shape = shapeOfTemplate(template)
    const own = operations.find(each => each.method === verb && shapeOfTemplate(each.template) === shape)
    return own === undefined ? endless.length > 0 : own.responses === null
  }
  return resources.filter(isEndless).map(({ verb, template }) => `${verb} ${template}`)
}

/** A template without the names of its variables, which tell no templates apart. */
export function shapeOfTemplate(template: string): string {
  return template.replaceAll(/\{[^}]*\}/g, '{}')
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
    const { name, in: place, required } = this.#schemas.typed(path) as Record<string, unknown>
    if (place !== 'path' && place !== 'query' && place !== 'header' && place !== 'cookie') return undefined
    const isRequired = required === true || place === 'path'
    return { place, isRequired, ...this.#styled(path, String(name), place, 'request') }
  }

  /** Style and schema of a parameter or of a header field. */
  #styled(
    path: Path,
    name: string,
    place: ParameterContract['place'],
    direction: Direction,
  ): ValueStyle & Pick<ParameterContract, 'schema'> {
    const { style, explode, content, allowEmptyValue } = this.#schemas.typed(path) as Record<string, unknown>
    const own = { name, allowsEmpty: allowEmptyValue === true }
    if (this.#document.version === '2.0') {
      return { ...own, ...this.#collection(path), schema: this.#schemaAt(path, direction) }
    }
    if (isObject(content)) {
      const [type = ''] = Object.keys(content)
      const isJson = /[/+]json$/.test(mediaType(type))
      const schema = isJson ? this.#schemaAt([...path, 'content', type, 'schema'], direction) : ''
      return { ...own, style: isJson ? 'json' : 'simple', explodes: false, schema }
    }
    const styled = typeof style === 'string' ? styleNamed(style) : DEFAULT_STYLES[place]
    const known = styled ?? DEFAULT_STYLES[place]
    const explodes = typeof explode === 'boolean' ? explode : known === 'form'
    return {
      ...own,
      style: known,
      explodes,
      schema: styled === undefined ? '' : this.#schemaAt([...path, 'schema'], direction),
    }
  }

  #collection(path: Path): Pick<ParameterContract, 'style' | 'explodes'> {
    const { collectionFormat: format } = this.#schemas.typed(path) as Record<string, unknown>
    return COLLECTIONS[Object.hasOwn(COLLECTIONS, String(format)) ? (format as keyof typeof COLLECTIONS) : 'csv']
  }

  /** Returns '' where there is none. */
  #schemaAt(path: Path, direction: Direction): string {
    return this.#schemas.typed(path) === undefined ? '' : this.#schemas.nameOf(path, direction)
  }

  #body(at: Path): OperationContract['body'] {
    const found = this.#document.objectAt([...at, 'requestBody'])
    if (found === undefined) return null
    const isRequired = String(found.value.required) === 'true'
    return { isRequired, content: this.#content([...found.path, 'content'], 'request') }
  }

  #content(path: Path, direction: Direction): ContentContract {
    const byType = Map.groupBy(this.#document.file.keys(path), mediaType)
    return Object.fromEntries(
      Array.from(
        byType,
        ([type, written]) =>
          [
            type,
            this.#media(
              written.map(each => [...path, each]),
              direction,
            ),
          ] as const,
      ),
    )
  }

  /** Media types that differ by parameters alone are one: a body follows one of their schemas. */
  #media(places: readonly Path[], direction: Direction): MediaContract {
    const schemas = [...new Set(places.map(place => this.#schemaAt([...place, 'schema'], direction)))]
    const fields = places.flatMap(place => this.#fields([...place, 'encoding'], direction))
    if (schemas.length === 1) return { schema: schemas[0]!, fields }
    const anyOf = schemas.map(schema => ({ $ref: `#/$defs/${schema}` }))
    return { schema: schemas.includes('') ? '' : this.#schemas.add({ anyOf }, places[0]!), fields }
  }

  /** Fields of a form, or parts of another multipart type, by their encoding. */
  #fields(path: Path, direction: Direction): readonly FieldContract[] {
    const isForm = FORMS.includes(mediaType(String(path.at(-2))))
    const encodings = this.#schemas.typed(path)
    if (!isObject(encodings)) return []
    return Object.entries(encodings).flatMap(([name, encoding]) => {
      if (!isObject(encoding)) return []
      const { style, explode, contentType } = encoding
      // Styles are those of forms (OpenAPI 3.1.1 4.8.15.1.2).
      const isStyled = isForm && STYLING.some(keyword => encoding[keyword] !== undefined)
      const known = (typeof style === 'string' ? styleNamed(style) : undefined) ?? 'form'
      const types = typeof contentType === 'string' && !isStyled ? contentType.split(',').map(mediaType) : []
      const explodes = typeof explode === 'boolean' ? explode : known === 'form'
      const headers = this.#headers([...path, name, 'headers'], direction)
      return [{ name, style: isStyled ? known : '', explodes, allowsEmpty: false, types, headers } as const]
    })
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
      return { isRequired: body.required === true, content: contentOf(types, schema) }
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
    return {
      isRequired: required.length > 0,
      content: contentOf(
        types,
        schema,
        fields.map(field => this.#formField(field.path as Path)),
      ),
    }
  }

  /** A field of OpenAPI 2.0: a parameter in `formData`. */
  #formField(path: Path): FieldContract {
    const { name, type, allowEmptyValue } = this.#schemas.typed(path) as Record<string, unknown>
    const { style, explodes } = this.#collection(path)
    const own = { name: String(name), explodes, allowsEmpty: allowEmptyValue === true, types: [], headers: [] }
    return { ...own, style: type === 'array' ? style : '' }
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
    const isEndless = all.some(([, { content }]) => Object.keys(content).some(type => ENDLESS.includes(type)))
    return isEndless || all.length === 0 ? null : Object.fromEntries(all)
  }

  #response(at: Path, status: string): ResponseContract {
    const found = this.#document.objectAt([...at, 'responses', status])
    if (found === undefined) return { headers: [], content: {} }
    const headers = this.#headers([...found.path, 'headers'], 'response')
    if (this.#document.version !== '2.0') {
      return { headers, content: this.#content([...found.path, 'content'], 'response') }
    }
    if (found.value.schema === undefined) return { headers, content: {} }
    const schema = this.#schemaAt([...found.path, 'schema'], 'response')
    const produces = this.#types(at, 'produces')
    return { headers, content: contentOf(produces.length === 0 ? ['application/json'] : produces, schema) }
  }

  /** Returns the header fields of a response or a part, which are described as parameters are. */
  #headers(path: Path, direction: Direction): readonly ParameterContract[] {
    return this.#document.file.keys(path).flatMap(name => {
      const found = this.#document.objectAt([...path, name])
      if (found === undefined) return []
      const isRequired = String(found.value.required) === 'true'
      return [{ place: 'header', isRequired, ...this.#styled(found.path, name, 'header', direction) } as const]
    })
  }
}

/** Content of OpenAPI 2.0: each type has the same schema. */
function contentOf(types: readonly string[], schema: string, fields: readonly FieldContract[] = []): ContentContract {
  return Object.fromEntries(types.map(type => [type, { schema, fields }]))
}

function mediaType(type: string): string {
  return type.split(';', 1)[0]!.trim().toLowerCase()
}
