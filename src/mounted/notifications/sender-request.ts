/** Reads sender configurations from requests. */
import { CONTENT_TYPES } from './body-template.ts'
import { Refused, shown } from './refusals.ts'
import {
  type Channel,
  FIELDS,
  isSecretField,
  isSecretProperty,
  NUMBERS,
  PROPERTY_KEYS,
  SAME,
  type SenderConfiguration,
  settingOf,
} from './sender-configuration.ts'

const DEFAULT_NAMES: Readonly<Record<Channel, string>> = { sms: 'SMSPublisher', email: 'EmailPublisher' }
const NAME = /^\w[\w.-]{0,99}$/
/** Keys that the gateway uses itself: stream of the events, its version, kind of sender. */
const RESERVED_KEYS = ['streamName', 'version', 'type']
const BODY_KEY = /^body\.\w+(?:[.-]\w+)*$/
const KEY_CHARS_MAX = 100
const VALUE_CHARS_MAX = 2048
const BODY_CHARS_MAX = 16_384
const PROPERTIES_MAX = 50
const PORT_MAX = 65_535
const HOST = /^[^\s/@\p{Cc}]{1,255}$/u

/**
 * `stored`: what a PUT replaces; null for a new sender. A secret that is left out keeps its stored value; '' and null
 * remove it. Throws Refused.
 */
export function readSender(channel: Channel, body: unknown, stored: SenderConfiguration | null): SenderConfiguration {
  if (!isObject(body)) throw invalid('the body is no JSON object')
  const known = ['name', ...FIELDS[channel], 'properties']
  const unknown = Object.keys(body).find(member => !known.includes(member))
  if (unknown !== undefined) throw invalid(`${shown(unknown)} is none of the members ${known.join(', ')}`)
  const properties = readProperties(channel, body.properties)
  const fields = new Map<string, string>()
  for (const field of FIELDS[channel]) {
    const value = readField(field, body[field])
    if (value !== '') fields.set(field, value)
  }
  const given = new Set([...FIELDS[channel].filter(field => body[field] !== undefined), ...properties.keys()])
  for (const [key, value] of properties) if (value === '') properties.delete(key)
  if (stored !== null) keepSecrets(stored, given, fields, properties)
  return { channel, name: readName(channel, body.name, stored?.name), fields, properties }
}

function readName(channel: Channel, value: unknown, stored: string | undefined): string {
  const name = value ?? stored ?? DEFAULT_NAMES[channel]
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalid('name has 1 to 100 letters, digits, _, . and -, and begins with a letter, digit or _')
  }
  if (stored !== undefined && name !== stored) throw invalid('name is not that of the path: a sender keeps its name')
  return name
}

/** '' where it is missing. */
function readField(field: string, value: unknown): string {
  if (value === undefined || value === null) return ''
  const text = NUMBERS.includes(field) && typeof value === 'number' ? String(value) : value
  if (typeof text !== 'string') throw invalid(`${field} is no ${NUMBERS.includes(field) ? 'number' : 'text'}`)
  checkValue(field, text, VALUE_CHARS_MAX)
  return text
}

function checkValue(name: string, text: string, most: number): void {
  if (text.length > most) throw invalid(`${name} has more than ${most} characters`)
  const isBody = name === 'body' || name.startsWith('body.')
  const pattern = isBody ? /\0/ : /[\0-\x1f\x7f]/
  if (pattern.test(text)) throw invalid(`${name} has control characters`)
}

function readProperties(channel: Channel, value: unknown): Map<string, string> {
  const properties = new Map<string, string>()
  if (value === undefined || value === null) return properties
  if (!Array.isArray(value)) throw invalid('properties is no array of {key, value}')
  if (value.length > PROPERTIES_MAX) throw invalid(`there are more than ${PROPERTIES_MAX} properties`)
  for (const property of value as readonly unknown[]) {
    const { key, value: text = null, ...rest } = isObject(property) ? property : {}
    if (typeof key !== 'string' || Object.keys(rest).length > 0) throw invalid('a property is no {key, value}')
    checkKey(channel, key)
    if (text !== null && typeof text !== 'string') throw invalid(`the value of the property ${key} is no text`)
    if (properties.has(key)) throw invalid(`the property ${key} is given twice`)
    checkValue(key, text ?? '', key === 'body' ? BODY_CHARS_MAX : VALUE_CHARS_MAX)
    properties.set(key, text ?? '')
  }
  return properties
}

function checkKey(channel: Channel, key: string): void {
  if (RESERVED_KEYS.includes(key)) throw invalid(`the property key ${key} is reserved: ${RESERVED_KEYS.join(', ')}`)
  const isBody = key === 'body' || (key.length <= KEY_CHARS_MAX && BODY_KEY.test(key))
  if (channel === 'sms' ? isBody || PROPERTY_KEYS.sms.includes(key) : PROPERTY_KEYS.email.includes(key)) return
  const known = [...(channel === 'sms' ? ['body', 'body.NAME'] : []), ...PROPERTY_KEYS[channel]].join(', ')
  throw invalid(`${shown(key)} is none of the property keys ${known}`)
}

/** A field and the property that means the same are one secret. */
function keepSecrets(
  stored: SenderConfiguration,
  given: ReadonlySet<string>,
  fields: Map<string, string>,
  properties: Map<string, string>,
): void {
  const isGiven = (name: string): boolean => {
    const twins = Object.entries(SAME).flatMap(([field, key]) => (field === name ? [key] : key === name ? [field] : []))
    return [name, ...twins].some(each => given.has(each))
  }
  for (const [field, value] of stored.fields) if (isSecretField(field) && !isGiven(field)) fields.set(field, value)
  for (const [key, value] of stored.properties) if (isSecretProperty(key) && !isGiven(key)) properties.set(key, value)
}

/** Rules that concern several members. Throws Refused. */
export function checkSender(configuration: SenderConfiguration): void {
  const { channel, fields, properties } = configuration
  for (const [field, key] of Object.entries(SAME)) {
    const [one, other] = [fields.get(field), properties.get(key)]
    if (one !== undefined && other !== undefined && one !== other) throw invalid(`${field} and ${key} differ`)
  }
  for (const name of ['smtpPort', 'mail.smtp.port', 'http.proxy.port']) {
    const port = fields.get(name) ?? properties.get(name)
    if (port !== undefined && !isPort(port)) throw invalid(`${name} is no port: 1 to ${PORT_MAX}`)
  }
  if (channel === 'email') checkEmail(configuration)
  else checkSms(configuration)
}

function checkSms(configuration: SenderConfiguration): void {
  const { fields, properties } = configuration
  const contentType = fields.get('contentType') ?? 'JSON'
  if (!CONTENT_TYPES.some(type => type === contentType)) throw invalid('contentType is JSON or FORM')
  if (properties.has('http.proxy.host') !== properties.has('http.proxy.port')) {
    throw invalid('http.proxy.host and http.proxy.port belong together')
  }
  if (!HOST.test(properties.get('http.proxy.host') ?? 'none')) throw invalid('http.proxy.host is no host')
  if ((fields.get('provider') ?? '').trim() === '') throw new Refused('no-provider', 'provider names no SMS provider')
}

/** After the provider is known. Throws Refused. */
export function checkProviderUrl(configuration: SenderConfiguration): void {
  const text = settingOf(configuration, 'providerURL')
  if (text === '') throw new Refused('no-url', 'providerURL, or the property http.url, is missing')
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) throw invalid('providerURL is no http or https URL')
  if (url.username !== '' || url.password !== '') {
    throw invalid('providerURL has credentials: give http.username and http.password')
  }
}

const ADDRESS = /^[^\s@<>()[\]\\,;:"\p{Cc}]{1,64}@[^\s@<>()[\]\\,;:"\p{Cc}]{1,255}$/u

function checkEmail(configuration: SenderConfiguration): void {
  const { properties } = configuration
  const from = settingOf(configuration, 'fromAddress')
  if (from === '') throw invalid('fromAddress is missing')
  if (!HOST.test(settingOf(configuration, 'smtpServerHost'))) {
    throw invalid('smtpServerHost, or the property mail.smtp.host, is missing or no host')
  }
  const addresses = { fromAddress: from, ...pick(properties, ['mail.smtp.replyTo', 'email.address']) }
  for (const [name, address] of Object.entries(addresses)) {
    if (!isMailAddress(address)) throw invalid(`${name} is no mail address`)
  }
  for (const key of ['mail.smtp.auth', 'mail.smtp.starttls.enable']) {
    if (!/^(?:true|false)?$/i.test(properties.get(key) ?? '')) throw invalid(`${key} is true or false`)
  }
  if (isTrue(properties.get('mail.smtp.auth')) && settingOf(configuration, 'userName') === '') {
    throw invalid('mail.smtp.auth needs userName')
  }
  if (!/^(?:text\/(?:plain|html))?$/i.test(properties.get('email.type') ?? '')) {
    throw invalid('email.type is text/plain or text/html')
  }
  if (/[<>"]/.test(properties.get('mail.smtp.signature') ?? '')) throw invalid('mail.smtp.signature has <, > or "')
}

export function isMailAddress(text: string): boolean {
  return ADDRESS.test(text)
}

export function isTrue(value: string | undefined): boolean {
  return value?.toLowerCase() === 'true'
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= PORT_MAX
}

function pick(properties: ReadonlyMap<string, string>, keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(keys.flatMap(key => (properties.has(key) ? [[key, properties.get(key)!]] : [])))
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function invalid(description: string): Refused {
  return new Refused('invalid', description)
}
