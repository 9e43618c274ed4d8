/** Edits JSON values at places that a JSONPath finds. Values are never changed: an edit returns a new one. */
import type { JsonPath } from './expression.ts'
import { checkTime } from './flow-limits.ts'
import { isObject, valueInNotation } from './formats/json-text.ts'
import { compileJsonPath } from './lazy-libraries.ts'
import { jsonOfXml } from './json-xml.ts'
import { type Json, memberOf, textOf, type Value } from './value.ts'

/** The value as JSON: a text that is JSON is its value, with its notation of numbers; an element is an object. */
export function jsonOfValue(value: Value): Json {
  if (typeof value === 'object') {
    if (value.kind === 'json') return value.value
    const [node] = value.nodes
    return node === undefined || typeof node === 'string' ? jsonOfValue(textOf(value)) : jsonOfXml(node)
  }
  if (typeof value !== 'string') return value
  try {
    return valueInNotation(value)
  } catch {
    return value
  }
}

/** Keys and indexes from the root. */
export type Location = readonly (string | number)[]

/** Places that exist, in order. */
export function locate({ text, keys }: JsonPath, json: Json): readonly Location[] {
  if (keys === null) return compileJsonPath(text).query(json).locations()
  const location: (string | number)[] = []
  let at: Json = json
  for (const key of keys) {
    const index: string | number = Array.isArray(at) && typeof key === 'number' && key < 0 ? at.length + key : key
    const next = memberOf(at, index)
    if (next === undefined) return []
    location.push(index)
    at = next
  }
  return [location]
}

export function valueAt(json: Json, location: Location): Json | undefined {
  let at: Json | undefined = json
  for (const key of location) at = memberOf(at, key)
  return at
}

/** `edit`: new value of the place; undefined removes it. The root cannot be removed: it becomes null. */
export function editAt(json: Json, location: Location, edit: (value: Json) => Json | undefined): Json {
  const [key, ...rest] = location
  if (key === undefined) return edit(json) ?? null
  const value = memberOf(json, key)
  if (value === undefined) return json
  const changed = rest.length === 0 ? edit(value) : editAt(value, rest, edit)
  if (Array.isArray(json))
    return json.flatMap((item, at) => (at !== key ? [item] : changed === undefined ? [] : [changed]))
  const entries = Object.entries(json as Readonly<Record<string, Json>>)
  return Object.fromEntries(
    entries.flatMap(([name, item]) =>
      name !== key ? [[name, item] as const] : changed === undefined ? [] : [[name, changed] as const],
    ),
  )
}

/**
 * Edits many places in one walk. `edit` gets each value with the number of its place, from 0; undefined removes it. A
 * place within another place is not edited.
 */
export function editAll(
  json: Json,
  locations: readonly Location[],
  edit: (value: Json, at: number) => Json | undefined,
): Json {
  const numbered = locations.map((location, at) => ({ location, at }))
  return numbered.length === 0 ? json : (editWithin(json, numbered, 0, edit) ?? null)
}

type Numbered = readonly { readonly location: Location; readonly at: number }[]

function editWithin(
  json: Json,
  places: Numbered,
  depth: number,
  edit: (value: Json, at: number) => Json | undefined,
): Json | undefined {
  const here = places.find(({ location }) => location.length === depth)
  if (here !== undefined) return edit(json, here.at)
  const groups = Map.groupBy(places, ({ location }) => location[depth]!)
  const changed = (key: string | number, value: Json) => {
    const within = groups.get(key)
    return within === undefined ? value : editWithin(value, within, depth + 1, edit)
  }
  if (Array.isArray(json)) {
    return json.map((item, at) => changed(at, item)).filter(item => item !== undefined)
  }
  const entries = Object.entries(json as Readonly<Record<string, Json>>)
  const kept = entries.map(([name, value]) => [name, changed(name, value)] as const)
  return Object.fromEntries(kept.filter((entry): entry is [string, Json] => entry[1] !== undefined))
}

/** Adds a value to an array, or the members of an object to an object; other values stay as they are. */
export function withChild(json: Json, child: Json): Json {
  if (Array.isArray(json)) return [...json, child]
  return isObject(json) && isObject(child) ? { ...json, ...child } : json
}

/** Adds a value after items of arrays, or members beside members of objects. */
export function withSiblings(json: Json, locations: readonly Location[], sibling: Json): Json {
  return editHolders(json, locations, (holder, keys) => {
    if (!Array.isArray(holder)) return withChild(holder, sibling)
    const counts = new Map<unknown, number>()
    for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
    return holder.flatMap((item, at) => [item, ...Array.from({ length: counts.get(at) ?? 0 }, () => sibling)])
  })
}

/** Renames members of objects, which keep their positions; those of one object from the last place to the first. */
export function withKeys(json: Json, locations: readonly Location[], name: string): Json {
  return editHolders(json, locations, (holder, keys) => {
    if (!isObject(holder)) return holder
    return keys.reduceRight((object: { readonly [name: string]: Json }, key) => {
      checkTime()
      return Object.fromEntries(Object.entries(object).map(([each, value]) => [each === key ? name : each, value]))
    }, holder)
  })
}

/** Edits what holds the places, each array and object once, and those within others first: an edit moves its items. */
function editHolders(
  json: Json,
  locations: readonly Location[],
  edit: (holder: Json, keys: readonly (string | number | undefined)[]) => Json,
): Json {
  const byDepth = [...Map.groupBy(locations, ({ length }) => length)].sort(([one], [other]) => other - one)
  return byDepth.reduce((whole, [, places]) => {
    const holders = [...Map.groupBy(places, place => JSON.stringify(place.slice(0, -1))).values()]
    const within = holders.map(([first]) => first!.slice(0, -1))
    return editAll(whole, within, (holder, at) =>
      edit(
        holder,
        holders[at]!.map(place => place.at(-1)),
      ),
    )
  }, json)
}
