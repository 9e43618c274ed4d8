/**
 * `<queryParameter>`, an element of our own: adds a parameter to the query of the request, or removes all of a name.
 * Names and values are written as they stand in a query, percent-encoded.
 */
import { mediator } from '../mediator.ts'
import { textOf } from '../value.ts'
import { TARGET } from './resource-path.ts'

interface QueryParameterSettings {
  readonly name: string
  /** null: removes the parameters of the name. */
  readonly value: string | null
}

/** Characters of a query (RFC 3986 3.4), without those that divide parameters. */
const PART = /^(?:[A-Za-z0-9._~!$'()*,;:@/?+-]|%[0-9A-Fa-f]{2})*$/

export const queryParameter = mediator<QueryParameterSettings>({
  name: 'queryParameter',
  attributes: ['name', 'value', 'action'],
  elements: [],

  parse(element, parser) {
    const name = parser.required(element, 'name')
    const action = parser.choice(element, 'action', ['add', 'remove'], 'add')
    if (name === undefined || action === undefined) return undefined
    const value = element.attribute('value')
    for (const [attribute, text] of [
      ['name', name],
      ['value', value],
    ] as const) {
      if (PART.test(text)) continue
      return parser.error(element, attribute, 'is not percent-encoded', 'encode spaces as %20 and & as %26', text)
    }
    if (action === 'add') return { name, value }
    if (element.has('value')) parser.error(element, 'value', 'has no effect with action="remove"', 'remove it')
    return { name, value: null }
  },

  needs: () => 'heads',

  compile({ name, value }) {
    const wanted = decoded(name)
    return message => {
      const target = textOf(message.get('axis2', TARGET) ?? '')
      const at = target.indexOf('?')
      const path = at < 0 ? target : target.slice(0, at)
      const parameters = at < 0 ? [] : target.slice(at + 1).split('&')
      const changed =
        value === null
          ? parameters.filter(one => decoded(one.split('=', 1)[0]!) !== wanted)
          : [...parameters.filter(one => one !== ''), `${name}=${value}`]
      message.set('axis2', TARGET, changed.length === 0 ? path : `${path}?${changed.join('&')}`)
      return true
    }
  },
})

/** Text that is not validly encoded stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}
