/** Configuration of a sender: fields and properties by name, and which of them are secrets. */

export const CHANNELS = ['sms', 'email'] as const
export type Channel = (typeof CHANNELS)[number]

export interface SenderConfiguration {
  readonly channel: Channel
  readonly name: string
  /** Fields of the request but name and properties, in their order; numbers as text. */
  readonly fields: ReadonlyMap<string, string>
  readonly properties: ReadonlyMap<string, string>
}

/** Fields in the order in which responses have them. */
export const FIELDS: Readonly<Record<Channel, readonly string[]>> = {
  sms: ['provider', 'providerURL', 'key', 'secret', 'sender', 'contentType'],
  email: ['smtpServerHost', 'smtpPort', 'fromAddress', 'userName', 'password'],
}

/** Keys of the adaptors; `body` and `body.NAME` come on top for SMS. */
export const PROPERTY_KEYS: Readonly<Record<Channel, readonly string[]>> = {
  sms: [
    ...['http.url', 'http.username', 'http.password', 'http.headers', 'http.client.method'],
    ...['http.proxy.host', 'http.proxy.port'],
  ],
  email: [
    ...['mail.smtp.host', 'mail.smtp.port', 'mail.smtp.user', 'mail.smtp.password', 'mail.smtp.from', 'mail.smtp.auth'],
    ...['mail.smtp.starttls.enable', 'mail.smtp.replyTo', 'mail.smtp.signature'],
    ...['email.address', 'email.type', 'email.subject'],
  ],
}

/** Fields and the properties that mean the same. */
export const SAME: Readonly<Record<string, string>> = {
  providerURL: 'http.url',
  smtpServerHost: 'mail.smtp.host',
  smtpPort: 'mail.smtp.port',
  fromAddress: 'mail.smtp.from',
  userName: 'mail.smtp.user',
  password: 'mail.smtp.password',
}

export const NUMBERS: readonly string[] = ['smtpPort']
const SECRET_FIELDS: readonly string[] = ['key', 'secret', 'password']
const SECRET_PROPERTIES: readonly string[] = ['http.password', 'http.headers', 'mail.smtp.password']
const SECRET_WORD = /^(?:.*(?:password|passwd|secret|token|credentials?)|(?:api)?key|auth|authorization)$/
const MASK = '********'
/** Fields of requests that are no secrets, and decide on the form of the body. */
const OPEN_HEADERS = ['accept', 'content-type']

export function isSecretField(name: string): boolean {
  return SECRET_FIELDS.includes(name)
}

/** True for secrets of the adaptors, and for `body.NAME` whose name has a word such as key, token or password. */
export function isSecretProperty(key: string): boolean {
  if (SECRET_PROPERTIES.includes(key)) return true
  if (!key.startsWith('body.')) return false
  const words = key
    .slice('body.'.length)
    .replaceAll(/([a-z\d])([A-Z])/g, '$1.$2')
    .toLowerCase()
  return words.split(/[^a-z\d]+/).some(word => SECRET_WORD.test(word))
}

/** The value of a field, or of the property that means the same; '' without one. */
export function settingOf({ fields, properties }: SenderConfiguration, field: string): string {
  return fields.get(field) ?? properties.get(SAME[field] ?? '') ?? ''
}

/** The same configuration with every secret replaced, for messages that people see. */
export function masked(configuration: SenderConfiguration): SenderConfiguration {
  const fields = [...configuration.fields].map(([name, value]) => [name, isSecretField(name) ? MASK : value] as const)
  const properties = [...configuration.properties].map(([key, value]) => {
    if (key === 'http.headers') return [key, maskedHeaders(value)] as const
    return [key, isSecretProperty(key) ? MASK : value] as const
  })
  return { ...configuration, fields: new Map(fields), properties: new Map(properties) }
}

function maskedHeaders(value: string): string {
  return headersOf(value)
    .map(([name, text]) => `${name}: ${OPEN_HEADERS.includes(name.toLowerCase()) ? text : MASK}`)
    .join(', ')
}

/** Pairs of `K: V, K: V`. A comma separates where a name and a colon follow it, so that values may have commas. */
export function headersOf(value: string): readonly (readonly [name: string, value: string])[] {
  return value
    .split(/,\s*(?=[!#$%&'*+.^_`|~\w-]+\s*:)/)
    .filter(pair => pair.trim() !== '')
    .map(pair => {
      const colon = pair.indexOf(':')
      return [pair.slice(0, Math.max(0, colon)).trim(), pair.slice(colon + 1).trim()] as const
    })
}

/** As responses show it: without secrets. */
export function representation({ name, channel, fields, properties }: SenderConfiguration): object {
  const shown = FIELDS[channel].flatMap(field => {
    const value = fields.get(field)
    if (value === undefined || isSecretField(field)) return []
    return [[field, NUMBERS.includes(field) ? Number(value) : value] as const]
  })
  const open = [...properties].filter(([key]) => !isSecretProperty(key)).map(([key, value]) => ({ key, value }))
  return { name, ...Object.fromEntries(shown), properties: open }
}
