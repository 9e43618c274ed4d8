/** The built-ins that templates may call, and how many arguments each takes. */
import { nearest } from '../../config/nearest.ts'
import { parsePattern } from '../pattern.ts'
import type { Term } from './plan.ts'

/** Names, with the least and the most arguments that they take. */
const ROWS: readonly (readonly [names: string, least: number, most: number])[] = [
  // Existence.
  ['exists has_content if_exists', 0, 0],
  ['default', 0, 10],
  // Texts.
  ['cap_first uncap_first capitalize upper_case lower_case length trim word_list chop_linebreak', 0, 0],
  ['contains starts_with ends_with ensure_starts_with ensure_ends_with remove_beginning remove_ending split', 1, 1],
  ['keep_after keep_after_last keep_before keep_before_last', 1, 1],
  ['index_of last_index_of left_pad right_pad substring matches', 1, 2],
  ['replace', 2, 3],
  ['html xhtml xml js_string json_string j_string groups eval_json number boolean', 0, 0],
  ['url url_path', 0, 1],
  // Numbers, booleans, dates.
  ['abs ceiling floor round int long is_nan is_infinite c', 0, 0],
  ['number_to_date number_to_time number_to_datetime iso_utc iso_utc_ms iso_local iso_local_ms', 0, 0],
  ['date time datetime', 0, 1],
  ['string', 0, 2],
  ['then', 2, 2],
  ['switch', 2, 50],
  // Sequences and hashes.
  ['first last reverse size sort min max keys values', 0, 0],
  ['sort_by seq_contains map filter take_while drop_while', 1, 1],
  ['chunk seq_index_of seq_last_index_of', 1, 2],
  ['join', 1, 3],
  // Loop variables.
  ['index counter has_next is_first is_last is_odd_item is_even_item item_parity item_parity_cap', 0, 0],
  ['item_cycle', 1, 50],
  // Nodes of XML.
  ['children parent root node_name node_type node_namespace next_sibling previous_sibling', 0, 0],
  ['ancestors', 0, 10],
  // Types.
  ['is_string is_number is_boolean is_date is_date_like is_date_only is_time is_datetime is_unknown_date_like', 0, 0],
  ['is_hash is_hash_ex is_sequence is_collection is_collection_ex is_enumerable is_indexable', 0, 0],
  ['is_node is_macro is_method is_directive is_markup_output', 0, 0],
]

const ARGUMENTS: ReadonlyMap<string, readonly [least: number, most: number]> = new Map(
  ROWS.flatMap(([names, least, most]) => names.split(' ').map(name => [name, [least, most]] as const)),
)

/** Remedies for the use of built-ins that are absent, by name. */
const REMEDIES: Readonly<Record<string, string>> = {
  new: 'a template creates no objects of Java',
  api: 'a template calls no methods of Java',
  has_api: 'a template calls no methods of Java',
  interpret: 'write the text as a part of the template',
  eval: 'use ?eval_json for JSON',
  esc: 'use ?xml or ?html',
  no_esc: 'leave it out, because nothing is escaped without ?xml, ?html or <#escape>',
}

const PATTERN_FLAGS = 'rifms'

interface Problem {
  /** '' for none. */
  readonly why: string
  readonly hint: string
}

/** Names may be written as `upperCase` too. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, capital => `_${capital.toLowerCase()}`)
}

export function builtInProblem(name: string, args: readonly Term[]): Problem {
  const known = ARGUMENTS.get(name)
  if (known === undefined) {
    const near = nearest(name, [...ARGUMENTS.keys()])
    const remedy = Object.hasOwn(REMEDIES, name) ? REMEDIES[name] : undefined
    const hint = remedy ?? (near === '' ? 'write it with others, or in <script>' : `?${near}?`)
    return { why: 'is not supported', hint }
  }
  const [least, most] = known
  if (args.length < least || args.length > most) {
    const expected = least === most ? `${least}` : `${least} to ${most}`
    return { why: `takes ${expected} arguments and not ${args.length}`, hint: 'correct them' }
  }
  const flags = name === 'replace' ? args[2] : name === 'matches' ? args[1] : undefined
  if (flags?.kind === 'literal' && typeof flags.value === 'string') {
    const unknown = [...flags.value].find(flag => !PATTERN_FLAGS.includes(flag))
    if (unknown !== undefined) return { why: `has the unknown flag ${unknown}`, hint: `known are ${PATTERN_FLAGS}` }
  }
  return patternProblem(name, args)
}

/** A pattern that the template gives can be checked now; others are checked with each message. */
function patternProblem(name: string, args: readonly Term[]): Problem {
  const [pattern, , flags] = args
  const isPattern =
    name === 'matches' || (name === 'replace' && flags?.kind === 'literal' && String(flags.value).includes('r'))
  if (!isPattern || pattern?.kind !== 'literal' || typeof pattern.value !== 'string') return { why: '', hint: '' }
  const { why, hint } = parsePattern(pattern.value)
  return why === '' ? { why, hint: '' } : { why: `has a pattern that ${why}`, hint }
}
