/** Makes the request to an SMS provider from a sender, the template of its provider and an event. */
import type { HttpMessage } from '../../delivery/http-sender.ts'
import { ATTRIBUTES, BodyTemplate, type ContentType, InvalidTemplate } from './body-template.ts'
import { type NotificationEvent, renderEvent } from './notification-event.ts'
import type { Provider } from './provider-file.ts'
import { headersOf, type SenderConfiguration, settingOf } from './sender-configuration.ts'
import { invalid } from './sender-request.ts'

const METHODS: Readonly<Record<string, HttpMessage['method']>> = {
  httppost: 'POST',
  httpput: 'PUT',
  httpget: 'GET',
}
const MEDIA_TYPES: Readonly<Record<ContentType, string>> = {
  JSON: 'application/json',
  FORM: 'application/x-www-form-urlencoded',
}
const FIELD_NAME = /^[!#$%&'*+.^_`|~\w-]+$/
const FIELD_VALUE = /^[\t\x20-\x7e]*$/
/** Fields that the gateway writes. */
const OWN_FIELDS = [
  ...['host', 'connection', 'content-length', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect'],
  ...['keep-alive', 'proxy-authorization', 'proxy-connection', 'idempotency-key'],
]
const NAMED = /\$([A-Za-z_]\w*)/g

/** Throws Refused where sender and template do not fit together, which a change of the template may bring about. */
export function smsMessage(
  sender: SenderConfiguration,
  provider: Provider,
  event: NotificationEvent,
  idempotencyKey: string,
): HttpMessage {
  const { properties } = sender
  const fields = requestFields(sender, provider)
  const contentType = contentTypeOf(sender, provider, fields)
  const template = templateOf(sender, provider, contentType)
  const missing = template.properties.filter(name => !properties.has(`body.${name}`)).map(name => `body.${name}`)
  if (missing.length > 0) throw invalid(`the template of ${provider.name} needs the properties ${missing.join(', ')}`)
  const body = filledBody(template, sender, event)
  const method = METHODS[settingWithDefault(sender, provider, 'http.client.method').toLowerCase() || 'httppost']
  if (method === undefined) throw invalid('http.client.method is HttpPost, HttpPut or HttpGet')
  if (method === 'GET' && contentType !== 'FORM') throw invalid('HttpGet needs contentType FORM: its body is the query')
  const url = new URL(settingOf(sender, 'providerURL'))
  if (method === 'GET') url.search = url.search === '' ? body : `${url.search}&${body}`
  const username = settingWithDefault(sender, provider, 'http.username')
  const password = settingWithDefault(sender, provider, 'http.password')
  if (username.includes(':')) throw invalid('http.username has a colon')
  const proxyHost = properties.get('http.proxy.host')
  return {
    url: url.href,
    method,
    fields,
    contentType: MEDIA_TYPES[contentType],
    body: method === 'GET' ? '' : body,
    credentials: username === '' ? null : { username, password },
    proxy: proxyHost === undefined ? null : { host: proxyHost, port: Number(properties.get('http.proxy.port')) },
    idempotencyKey,
  }
}

function filledBody(template: BodyTemplate, sender: SenderConfiguration, event: NotificationEvent): string {
  const { text } = renderEvent(event, false)
  try {
    return template.fill({
      attribute: name => attributeOf(sender, name),
      property: name => sender.properties.get(`body.${name}`) ?? '',
      mobile: event.recipient,
      body: text,
    })
  } catch (error) {
    throw error instanceof InvalidTemplate ? invalid(error.message) : error
  }
}

function attributeOf({ name, fields, properties }: SenderConfiguration, attribute: string): string {
  if (attribute === 'name') return name
  return fields.get(attribute) ?? (attribute === 'providerURL' ? (properties.get('http.url') ?? '') : '')
}

/** The property of the sender, else that of the template with the values of its fields. */
function settingWithDefault(sender: SenderConfiguration, { defaults }: Provider, key: string): string {
  return sender.properties.get(key) ?? filled(sender, defaults.get(key) ?? '')
}

function filled(sender: SenderConfiguration, text: string): string {
  return text.replaceAll(NAMED, (whole, name: string) =>
    ATTRIBUTES.includes(name) ? attributeOf(sender, name) : whole,
  )
}

function requestFields(sender: SenderConfiguration, { defaults }: Provider): [name: string, value: string][] {
  const own = sender.properties.get('http.headers')
  const given =
    own === undefined
      ? // Values are filled in after the split: none can add a field.
        headersOf(defaults.get('http.headers') ?? '').map(([name, value]) => [name, filled(sender, value)] as const)
      : headersOf(own)
  const fields = given.filter(([, value]) => value !== '')
  for (const [name, value] of fields) {
    if (!FIELD_NAME.test(name)) throw invalid('http.headers is no list of "K: V, K: V"')
    if (OWN_FIELDS.includes(name.toLowerCase())) throw invalid(`http.headers has ${name}, which the gateway writes`)
    if (!FIELD_VALUE.test(value)) throw invalid(`the value of ${name} in http.headers has characters beyond ASCII`)
  }
  return fields.map(([name, value]) => [name, value])
}

/** Returns the type of the sender or its headers, else that of the template. Both must agree: it decides on escapes. */
function contentTypeOf(
  sender: SenderConfiguration,
  provider: Provider,
  fields: readonly (readonly [name: string, value: string])[],
): ContentType {
  const given = sender.fields.get('contentType') as ContentType | undefined
  const header = fields.find(([name]) => name.toLowerCase() === 'content-type')?.[1]
  const ofHeader = header === undefined ? undefined : typeOfHeader(header)
  if (header !== undefined && ofHeader === undefined) throw invalid('Content-Type in http.headers is no JSON or form')
  if (given !== undefined && ofHeader !== undefined && given !== ofHeader) {
    throw invalid('contentType and Content-Type in http.headers differ')
  }
  return given ?? ofHeader ?? provider.contentType
}

function typeOfHeader(value: string): ContentType | undefined {
  const media = value.split(';')[0]!.trim().toLowerCase()
  if (media === MEDIA_TYPES.FORM) return 'FORM'
  return media === MEDIA_TYPES.JSON || /^application\/[\w.-]+\+json$/.test(media) ? 'JSON' : undefined
}

/** The property `body` takes the place of the provider's template. */
function templateOf(sender: SenderConfiguration, provider: Provider, contentType: ContentType): BodyTemplate {
  const own = sender.properties.get('body')
  try {
    return new BodyTemplate(own ?? provider.body, contentType)
  } catch (error) {
    if (!(error instanceof InvalidTemplate)) throw error
    const where = own === undefined ? `the template of ${provider.name}` : 'the property body'
    throw invalid(`${where} does not fit contentType ${contentType}: ${error.message}`)
  }
}
