/**
 * The providers of the template file. The file is read again when it has changed; while it has an error, the providers
 * of its last good state stay in force. A home without the file has the providers that come with the gateway.
 */
import { readFileSync, statSync } from 'node:fs'
import { SaxesParser } from 'saxes'
import type { MountedContext } from '../interface.ts'
import { BodyTemplate, CONTENT_TYPES, type ContentType, InvalidTemplate } from './body-template.ts'
import { Refused } from './refusals.ts'
import { SHIPPED_PROVIDERS } from './shipped-providers.ts'

export interface Provider {
  readonly name: string
  readonly contentType: ContentType
  /** Text of the template, for senders with another content type. */
  readonly body: string
  /** Defaults of properties, with `$name` in their values. */
  readonly defaults: ReadonlyMap<string, string>
  /** Bounds for each of its senders, below those of the settings; infinite where the entry has none. */
  readonly concurrency: number
  readonly perSecond: number
}

type Providers = ReadonlyMap<string, Provider>

const DEFAULTS = ['http.username', 'http.password', 'http.headers', 'http.client.method']
const NUMBERS = { concurrency: [1, 100], rate: [0.001, 100_000] } as const
const FILE_BYTES_MAX = 1_048_576

export class ProviderFile {
  readonly #file: string
  readonly #log: MountedContext['log']
  /** Null: no state of the file was good yet. */
  #providers: Providers | null = null
  /** Size and time of the file as it was read; '' before. */
  #stamp = ''

  constructor(file: string, log: MountedContext['log']) {
    this.#file = file
    this.#log = log
  }

  /** Throws Refused: the name is unknown, or there is no usable file. */
  find(name: string): Provider {
    const providers = this.#current()
    const found = providers.get(name)
    if (found !== undefined) return found
    const known = [...providers.keys()].join(', ')
    throw new Refused('no-template', `the provider is none of those of the template file: ${known}`)
  }

  #current(): Providers {
    const stamp = stampOf(this.#file)
    if (stamp !== this.#stamp) {
      this.#stamp = stamp
      this.#read(stamp)
    }
    if (this.#providers === null) throw new Refused('template-file', 'the event log of the gateway has the reason')
    return this.#providers
  }

  #read(stamp: string): void {
    try {
      if (Number.parseInt(stamp, 10) > FILE_BYTES_MAX) throw new InvalidTemplate(`more than ${FILE_BYTES_MAX} bytes`)
      this.#providers = readProviders(stamp === MISSING ? SHIPPED_PROVIDERS : readFileSync(this.#file, 'utf8'))
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      const cause = error instanceof InvalidTemplate ? message : (code ?? 'no XML')
      this.#log('error', 'template file of SMS providers refused', { FILE: this.#file, CAUSE: cause })
    }
  }
}

const MISSING = 'missing'

function stampOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false })
  return found === undefined ? MISSING : `${found.size} ${found.mtimeMs} ${found.ino}`
}

/** Elements with an attribute `provider` and an element `body` are entries. Throws InvalidTemplate. */
export function readProviders(xml: string): Providers {
  const providers = new Map<string, Provider>()
  const parser = new SaxesParser()
  let entry: { readonly attributes: ReadonlyMap<string, string>; body: string | null } | null = null
  let isBody = false
  const fail = (cause: string): never => {
    throw new InvalidTemplate(`line ${parser.line}: ${cause}`)
  }
  const append = (text: string): void => {
    if (isBody) entry!.body += text
    else if (text.trim() !== '') fail('text stands outside of a body')
  }
  parser.on('error', ({ message }) => fail(message.replace(/^[\d:]+ /, '')))
  parser.on('text', append)
  parser.on('cdata', append)
  parser.on('opentag', ({ name, attributes }) => {
    if (isBody) fail(`<${name}> stands in a body: write &lt; or CDATA`)
    if (entry === null) {
      const given = new Map(Object.entries(attributes as Record<string, string>))
      if (given.has('provider')) entry = { attributes: given, body: null }
    } else if (name !== 'body' || entry.body !== null) fail('an entry has one element, body')
    else {
      entry.body = ''
      isBody = true
    }
  })
  parser.on('closetag', () => {
    if (isBody) isBody = false
    else if (entry !== null) {
      const provider = providerOf(entry.attributes, entry.body, fail)
      if (providers.has(provider.name)) fail(`the provider ${provider.name} has two entries`)
      providers.set(provider.name, provider)
      entry = null
    }
  })
  parser.write(xml).close()
  return providers
}

function providerOf(
  attributes: ReadonlyMap<string, string>,
  given: string | null,
  fail: (cause: string) => never,
): Provider {
  const name = attributes.get('provider')!
  const contentType = CONTENT_TYPES.find(type => type === (attributes.get('contentType') ?? 'JSON'))
  const body = (given ?? '').trim()
  if (contentType === undefined) return fail(`contentType of ${name} is one of ${CONTENT_TYPES.join(', ')}`)
  if (name === '' || body === '') return fail('an entry has the attribute provider and the element body')
  const known = ['provider', 'contentType', ...DEFAULTS, ...Object.keys(NUMBERS)]
  for (const key of attributes.keys()) {
    if (!known.includes(key)) fail(`${name} has an attribute other than ${known.join(', ')}`)
  }
  const number = (key: keyof typeof NUMBERS): number => {
    const [least, most] = NUMBERS[key]
    const value = attributes.has(key) ? Number(attributes.get(key)) : Number.POSITIVE_INFINITY
    const isBound = attributes.has(key) && !(value >= least && value <= most)
    return isBound ? fail(`${key} of ${name} is a number from ${least} to ${most}`) : value
  }
  const defaults = new Map([...attributes].filter(([key]) => DEFAULTS.includes(key)))
  const bounds = { concurrency: Math.floor(number('concurrency')), perSecond: number('rate') }
  try {
    new BodyTemplate(body, contentType)
  } catch (error) {
    if (error instanceof InvalidTemplate) fail(`${name}: ${error.message}`)
    throw error
  }
  return { name, contentType, body, defaults, ...bounds }
}
