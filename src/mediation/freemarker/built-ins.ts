/** The built-ins of templates by name; `built-in-names.ts` has their arguments. */
import type { BuiltIn } from './built-in-call.ts'
import { OF_NUMBERS } from './built-ins-numbers.ts'
import { OF_SEQUENCES } from './built-ins-sequences.ts'
import { OF_TEXTS } from './built-ins-texts.ts'
import { type NodeType, NodeList, NodeValue } from './nodes.ts'
import { textIn, truthOf } from './texts.ts'
import {
  Callable,
  DateValue,
  isHash,
  isListableHash,
  isNumber,
  itemsOf,
  RegexMatch,
  type TemplateValue,
} from './values.ts'

const isDate = (value: TemplateValue, kind: string): boolean => value instanceof DateValue && value.kind === kind
const isSequence = (value: TemplateValue): boolean => itemsOf(value) !== undefined

const OF_TYPES: Readonly<Record<string, BuiltIn>> = {
  is_string: ({ target }) => textIn(target) !== undefined,
  is_number: ({ target }) => isNumber(target),
  is_boolean: ({ target }) => truthOf(target) !== undefined,
  is_date: ({ target }) => target instanceof DateValue,
  is_date_like: ({ target }) => target instanceof DateValue,
  is_date_only: ({ target }) => isDate(target, 'date'),
  is_time: ({ target }) => isDate(target, 'time'),
  is_datetime: ({ target }) => isDate(target, 'datetime'),
  is_unknown_date_like: () => false,
  is_hash: ({ target }) => isHash(target),
  is_hash_ex: ({ target }) => isListableHash(target),
  is_sequence: ({ target }) => isSequence(target),
  is_collection: ({ target }) => isSequence(target),
  is_collection_ex: ({ target }) => isSequence(target),
  is_enumerable: ({ target }) => isSequence(target),
  is_indexable: ({ target }) => isSequence(target),
  is_node: ({ target }) => target instanceof NodeValue || (target instanceof NodeList && target.size === 1),
  is_macro: ({ target }) => target instanceof Callable && target.kind !== 'lambda',
  is_method: ({ target }) => target instanceof Callable && target.kind === 'function',
  is_directive: ({ target }) => target instanceof Callable && target.kind === 'macro',
  is_markup_output: () => false,
}

const NODE_TYPES: Readonly<Record<NodeType, string>> = {
  document: 'document',
  element: 'element',
  text: 'text',
  attribute: 'attribute',
}

const OF_NODES: Readonly<Record<string, BuiltIn>> = {
  children: ({ node }) => node.children,
  parent: ({ node }) => node.parent ?? undefined,
  root: ({ node }) => node.root,
  ancestors: call => {
    const names = call.args.map((_, at) => call.textAt(at))
    const ancestors: NodeValue[] = []
    for (let node = call.node.parent; node !== null; node = node.parent) {
      if (names.length === 0 || names.includes(node.name)) ancestors.push(node)
    }
    return ancestors
  },
  node_name: ({ node }) => node.name,
  node_type: ({ node }) => NODE_TYPES[node.type],
  node_namespace: ({ node }) => node.namespace,
  next_sibling: ({ node }) => node.sibling(1),
  previous_sibling: ({ node }) => node.sibling(-1),
}

const OF_MATCHES: Readonly<Record<string, BuiltIn>> = {
  groups: call => {
    if (!(call.target instanceof RegexMatch)) return call.fail('has no groups: only the result of ?matches has them')
    return call.target.groups ?? []
  },
}

export const BUILT_INS: Readonly<Record<string, BuiltIn>> = {
  ...OF_TEXTS,
  ...OF_NUMBERS,
  ...OF_SEQUENCES,
  ...OF_TYPES,
  ...OF_NODES,
  ...OF_MATCHES,
}
