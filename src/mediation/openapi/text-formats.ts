/**
 * Formats of texts and numbers (JSON Schema 2020-12 validation 7.3, OpenAPI 3.1.1 4.4), each in linear time, because
 * clients choose the texts. A format that is not here is no rule.
 */

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/
const TIME = /^([01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i
const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i
const DURATION = /^P(?=.)(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?)$/
const LABEL = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/i
const LOCAL_PART = /^[\w!#$%&'*+/=?^`{|}~.-]{1,64}$/
const BASE64 = /^[A-Za-z\d+/]*={0,2}$/
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/
const IPV6_MAX = 45
const HOST_MAX = 253
const URI_MAX = 8192

/** Days of months in a leap year. */
const DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

function isDate(text: string): boolean {
  const [, year, month, day] = (DATE.exec(text) ?? []).map(Number)
  if (year === undefined || month! < 1 || month! > 12 || day! < 1 || day! > DAYS[month! - 1]!) return false
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return month !== 2 || day! < 29 || isLeap
}

function isDateTime(text: string): boolean {
  return /^[tT ]/.test(text.slice(10, 11)) && isDate(text.slice(0, 10)) && TIME.test(text.slice(11))
}

function isHostName(text: string): boolean {
  return text.length <= HOST_MAX && text.split('.').every(label => LABEL.test(label))
}

function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@')
  return at > 0 && LOCAL_PART.test(text.slice(0, at)) && isHostName(text.slice(at + 1))
}

function isUri(text: string): boolean {
  return text.length <= URI_MAX && /^[a-z][a-z\d+.-]*:[^\s"<>\\^`{|}]*$/i.test(text)
}

const texts: Readonly<Record<string, (text: string) => boolean>> = {
  date: isDate,
  'date-time': isDateTime,
  time: text => TIME.test(text),
  duration: text => text.length <= 100 && DURATION.test(text),
  uuid: text => UUID.test(text),
  email: isEmail,
  hostname: isHostName,
  ipv4: text => IPV4.test(text),
  ipv6: text => text.length <= IPV6_MAX && /^[\da-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]`),
  uri: isUri,
  url: isUri,
  byte: text => text.length % 4 === 0 && BASE64.test(text),
}

const INT32 = 2 ** 31
const INT64 = 2 ** 63

const numbers: Readonly<Record<string, (value: number) => boolean>> = {
  int32: value => Number.isInteger(value) && value >= -INT32 && value < INT32,
  // A double holds no further digits: the limits themselves are as near as it comes.
  int64: value => Number.isInteger(value) && value >= -INT64 && value <= INT64,
}

interface Format {
  readonly type: 'string' | 'number'
  validate(value: never): boolean
}

export const FORMATS: Readonly<Record<string, Format>> = {
  ...Object.fromEntries(Object.entries(texts).map(([name, validate]) => [name, { type: 'string', validate }])),
  ...Object.fromEntries(Object.entries(numbers).map(([name, validate]) => [name, { type: 'number', validate }])),
}
