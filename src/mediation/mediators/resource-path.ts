/**
 * `<resourcePath>`, an element of our own: replaces the path of the request behind the context of its API. `{name}`, or
 * `{uri.var.name}` as exported policies write it, is the variable of that name in the template of the resource. It is
 * percent-encoded: a client chooses no other segment and no query. With `keepsQuery` the query of the request stays.
 */
import { mediator } from '../mediator.ts'
import { textOf } from '../value.ts'

interface ResourcePathSettings {
  /** Begins with a slash. */
  readonly path: string
  readonly keepsQuery: boolean
}

/** Property of the scope axis2: path and query behind the context. */
export const TARGET = 'REST_URL_POSTFIX'
/** Path and query (RFC 3986 3.3, 3.4), with variables. */
const PATH = /^\/(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2}|\{[\w.-]+\})*$/
const VARIABLE = /\{(?:uri\.var\.)?([\w.-]+)\}/g

export const resourcePath = mediator<ResourcePathSettings>({
  name: 'resourcePath',
  attributes: ['value', 'keepsQuery'],
  elements: [],

  parse(element, parser) {
    const value = parser.required(element, 'value')
    const keepsQuery = parser.flag(element, 'keepsQuery')
    if (value === undefined || keepsQuery === undefined) return undefined
    const path = value.startsWith('/') ? value : `/${value}`
    if (!PATH.test(path)) return parser.error(element, 'value', 'is not a path', 'percent-encode it', value)
    return { path, keepsQuery }
  },

  needs: () => 'heads',

  compile({ path, keepsQuery }) {
    return message => {
      const before = textOf(message.get('axis2', TARGET) ?? '')
      const at = before.indexOf('?')
      const query = keepsQuery && at >= 0 ? before.slice(at + 1) : ''
      const made = path.replaceAll(VARIABLE, (whole, name: string) => {
        const value = message.get('default', `uri.var.${name}`)
        return value === undefined ? whole : encodeURIComponent(textOf(value).toWellFormed())
      })
      message.set('axis2', TARGET, query === '' ? made : `${made}${made.includes('?') ? '&' : '?'}${query}`)
      return true
    }
  },
})
