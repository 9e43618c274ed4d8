/** A request as implementations of mounted APIs see it. Members that are seldom read are made on first use. */
import type { MountedCaller, MountedRequest } from '../mounted/interface.ts'
import type { RequestData } from '../plan/mounted-messages.ts'
import type { RequestBody } from './request-body.ts'

export class MountedRequestView implements MountedRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly fields: MountedRequest['fields']
  readonly caller: MountedCaller
  readonly body: RequestBody
  hasClientEnded = false
  readonly #data: RequestData
  #abort: AbortController | null = null
  #variables: Readonly<Record<string, string>> | null = null

  constructor(data: RequestData, body: RequestBody) {
    const { method, target, fields, caller } = data
    const query = target.indexOf('?')
    this.method = method
    this.path = query < 0 ? target : target.slice(0, query)
    this.query = query < 0 ? '' : target.slice(query + 1)
    this.fields = fields
    this.caller = caller
    this.body = body
    this.#data = data
  }

  get operation(): MountedRequest['operation'] {
    const { verb, template } = this.#data
    return { verb, template }
  }

  get variables(): Readonly<Record<string, string>> {
    const { context, base, template } = this.#data
    this.#variables ??= { ...variablesOf(context, base), ...variablesOf(template, this.path) }
    return this.#variables
  }

  get url(): string {
    const { scheme, host, base } = this.#data
    return `${scheme}://${host}${base}`
  }

  get address(): string {
    return this.#data.address
  }

  get correlationId(): string {
    return this.#data.correlationId
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    return this.#abort.signal
  }

  field(name: string): string | undefined {
    const lower = name.toLowerCase()
    const values = this.fields.filter(([each]) => each.toLowerCase() === lower).map(([, value]) => value)
    return values.length === 0 ? undefined : values.join(', ')
  }

  /** Aborts the request, because no client waits for the response. */
  abort(): void {
    this.#abort ??= new AbortController()
    this.#abort.abort()
  }
}

function variablesOf(template: string, path: string): Record<string, string> {
  const variables: Record<string, string> = {}
  if (!template.includes('{')) return variables
  const segments = path.split('/')
  for (const [at, text] of template.split('/').entries()) {
    const name = /^\{([^{}]*)\}$/.exec(text)?.[1]
    const segment = segments[at]
    if (name !== undefined && segment !== undefined) variables[name] = decoded(segment)
  }
  return variables
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
