/** Built-ins of sequences and hashes. */
import type { BuiltIn, BuiltInCall } from './built-in-call.ts'
import { JoinedHash } from './joined-hash.ts'
import { NodeList } from './nodes.ts'
import { Pieces } from './pieces.ts'
import { Sequence } from './sequence.ts'
import { textIn, truthOf } from './texts.ts'
import {
  DateValue,
  doubleOf,
  isHash,
  isMissing,
  isNumber,
  type Items,
  itemsOf,
  memberIn,
  namesOf,
  type TemplateValue,
} from './values.ts'

const collator = new Intl.Collator('en-US')

type Comparable = number | string

/** Returns the value by which an item is sorted: a number, text, boolean or date, all items of one kind. */
function comparable(call: BuiltInCall, value: TemplateValue): Comparable {
  if (isMissing(value)) return call.fail('has an item that is missing')
  if (isNumber(value)) return doubleOf(value)
  if (value instanceof DateValue) return value.ms
  const truth = truthOf(value)
  if (truth !== undefined) return truth ? 1 : 0
  return textIn(value) ?? call.fail('has an item that is neither a text, number, boolean nor date')
}

function compare(one: Comparable, other: Comparable): number {
  if (typeof one === 'string' && typeof other === 'string') return collator.compare(one, other)
  return one < other ? -1 : one > other ? 1 : 0
}

function sorted(call: BuiltInCall, keyOf: (item: TemplateValue) => TemplateValue): readonly TemplateValue[] {
  const { list } = call
  const keyed = list.map(item => ({ item, key: comparable(call, keyOf(item)) }))
  const [first] = keyed
  if (keyed.some(({ key }) => typeof key !== typeof first!.key)) return call.fail('has items of several kinds')
  call.env.spend(list.length * Math.ceil(Math.log2(list.length + 1)))
  return keyed.sort((one, other) => compare(one.key, other.key)).map(({ item }) => item)
}

/** The member that a path of names leads to. */
function memberAt(call: BuiltInCall, item: TemplateValue, path: readonly string[]): TemplateValue {
  let value = item
  for (const name of path) {
    if (!isHash(value)) return call.fail('has an item that is no hash')
    value = memberIn(value, name)
  }
  return value
}

function sortedBy(call: BuiltInCall): readonly TemplateValue[] {
  const [by] = call.args
  const names = typeof by === 'string' ? undefined : itemsOf(by)
  const path = names === undefined ? [call.textAt(0)] : itemsIn(names).map(name => call.printed(name))
  return sorted(call, item => memberAt(call, item, path))
}

function extreme(call: BuiltInCall, sign: number): TemplateValue {
  const items = call.list.filter(item => !isMissing(item)).map(item => ({ item, key: comparable(call, item) }))
  if (items.length === 0) return undefined
  return items.reduce((best, each) => (sign * compare(each.key, best.key) > 0 ? each : best)).item
}

function joined(call: BuiltInCall): string {
  const items = call.list.filter(item => !isMissing(item))
  const separator = call.textAt(0)
  if (items.length === 0) return call.args.length > 1 ? call.textAt(1) : ''
  const texts = new Pieces(call.env)
  for (const [at, item] of items.entries()) texts.add(`${at === 0 ? '' : separator}${call.printed(item)}`)
  if (call.args.length > 2) texts.add(call.textAt(2))
  return texts.text
}

function chunks(call: BuiltInCall): TemplateValue {
  const { list } = call
  const size = call.numberAt(0)
  if (!Number.isInteger(size) || size < 1) return call.fail('has no whole number from 1 as its size')
  const chunked: TemplateValue[][] = []
  for (let at = 0; at < list.length; at += size) chunked.push(list.slice(at, at + size))
  const last = chunked.at(-1)
  if (call.args.length > 1 && last !== undefined) {
    call.env.collects(size)
    while (last.length < size) last.push(call.args[1])
  }
  return chunked
}

function itemsIn(items: Items): TemplateValue[] {
  return Array.from({ length: items.size }, (_, at) => items.at(at))
}

/** Where the items of a list of values stand first: a loop may look for one in each turn. */
interface ItemIndex {
  readonly places: Map<string, number>
  /** So many items are in it. */
  size: number
}

/** Null: the list was searched once. */
const indexes = new WeakMap<object, ItemIndex | null>()

/** Place of the first item that is the wanted one, by an index; undefined where the list has to be searched. */
function indexed(call: BuiltInCall): number | undefined {
  const { target, items } = call
  const wanted = itemKey(call.args[0])
  const list = target instanceof Sequence ? target.memory : target
  if (call.args.length > 1 || wanted === undefined || typeof list !== 'object' || list === null) return undefined
  if (!Array.isArray(list) && !(list instanceof NodeList)) return undefined
  let index = indexes.get(list)
  if (index === undefined && !(target instanceof Sequence)) {
    indexes.set(list, null)
    return undefined
  }
  if (index === undefined || index === null) {
    index = { places: new Map(), size: 0 }
    indexes.set(list, index)
  }
  call.env.collects(items.size, Math.max(0, items.size - index.size))
  for (; index.size < items.size; index.size++) {
    const key = itemKey(items.at(index.size))
    if (key !== undefined && !index.places.has(key)) index.places.set(key, index.size)
  }
  const at = index.places.get(wanted) ?? -1
  return at < items.size ? at : -1
}

/** Equal keys are equal values of one kind; undefined for a value that equals none, or has to be compared. */
function itemKey(value: TemplateValue): string | undefined {
  if (isMissing(value)) return undefined
  if (isNumber(value)) return Number.isNaN(doubleOf(value)) ? undefined : `n${doubleOf(value)}`
  if (value instanceof DateValue) return `d${value.ms}`
  const truth = truthOf(value)
  if (truth !== undefined) return `b${truth}`
  const text = textIn(value)
  return text === undefined ? undefined : `t${text}`
}

function indexIn(call: BuiltInCall, isLast: boolean): number {
  const known = isLast ? undefined : indexed(call)
  if (known !== undefined) return known
  const { list, args } = call
  const wanted = args[0]
  const from = args.length > 1 ? call.numberAt(1) : isLast ? list.length - 1 : 0
  const isWanted = (item: TemplateValue): boolean => !isMissing(item) && isSame(call, item, wanted)
  if (isLast) return list.slice(0, Math.max(0, from + 1)).findLastIndex(isWanted)
  const at = list.slice(Math.max(0, from)).findIndex(isWanted)
  return at === -1 ? -1 : at + Math.max(0, from)
}

/** Items of another kind are other items. */
function isSame(call: BuiltInCall, item: TemplateValue, wanted: TemplateValue): boolean {
  const kinds = [item, wanted].map(value =>
    isNumber(value) ? 'number' : value instanceof DateValue ? 'date' : truthOf(value) === undefined ? 'text' : 'truth',
  )
  if (kinds[0] !== kinds[1] || (kinds[0] === 'text' && textIn(item) === undefined)) return false
  return call.isEqual(item, wanted)
}

export const OF_SEQUENCES: Readonly<Record<string, BuiltIn>> = {
  chunk: chunks,
  first: ({ items }) => items.at(0),
  last: ({ items }) => (items.size === 0 ? undefined : items.at(items.size - 1)),
  join: joined,
  reverse: ({ list }) => list.toReversed(),
  size: call => {
    if (call.target instanceof JoinedHash) return call.target.size
    const names = namesOf(call.target)
    if (names === undefined) return call.items.size
    call.env.spend(names.length)
    return names.length
  },
  sort: call => sorted(call, item => item),
  sort_by: sortedBy,
  seq_contains: call => indexIn(call, false) !== -1,
  seq_index_of: call => indexIn(call, false),
  seq_last_index_of: call => indexIn(call, true),
  min: call => extreme(call, -1),
  max: call => extreme(call, 1),
  map: call => {
    const map = call.functionAt(0)
    return call.list.map(item => map(item))
  },
  filter: call => {
    const isKept = call.conditionAt(0)
    return call.list.filter(item => isKept(item))
  },
  take_while: call => {
    const { list } = call
    const isKept = call.conditionAt(0)
    const end = list.findIndex(item => !isKept(item))
    return end === -1 ? list : list.slice(0, end)
  },
  drop_while: call => {
    const { list } = call
    const isDropped = call.conditionAt(0)
    const from = list.findIndex(item => !isDropped(item))
    return from === -1 ? [] : list.slice(from)
  },
  keys: call => {
    call.env.collects(call.names.length)
    return call.names
  },
  values: call => {
    const { names, target } = call
    call.env.collects(names.length)
    return names.map(name => memberIn(target, name))
  },
}
