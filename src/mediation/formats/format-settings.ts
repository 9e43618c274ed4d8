/** Settings of builders, formatters and conversions, from `deployment.toml`: plain data for worker threads. */
import type { Configuration } from '../../config/catalogue.ts'
import { FORMATTED_TYPES } from '../../config/catalogue/message-builders.ts'
import { mediaTypeOf } from '../../http1/media-type.ts'
import type { BodyLimits } from './body-limits.ts'
import type { ConversionSettings } from './json-to-xml.ts'

export interface FormatSettings extends FormatModules {
  readonly limits: BodyLimits
  readonly conversion: ConversionSettings
  /** Bytes that are read at once of a body in a file (`synapse.temp_data_chunk_size`). */
  readonly pieceSize: number
  /** Modules of blocking calls: their own, else those of all messages; null without any of their own. */
  readonly ofBlockingCalls: FormatModules | null
}

/** Modules by media type, as the configuration names them. */
export interface FormatModules {
  readonly builders: Readonly<Record<string, string>>
  readonly formatters: Readonly<Record<string, string>>
}

/** A module that the configuration names, with its key. */
interface NamedModule {
  readonly key: string
  readonly mediaType: string
  readonly path: string
}

/** Modules that the configuration names for messages, or for blocking calls; one for each key and row that is set. */
export function namedFormats(
  configuration: Configuration,
  side: 'builders' | 'formatters',
  of: '' | 'blocking.',
): readonly NamedModule[] {
  const section = `${of}message_${side}` as const
  const rows = `${of}custom_message_${side}` as const
  const paths: Readonly<Record<string, string | undefined>> = configuration[section]
  const named = Object.entries(FORMATTED_TYPES).map(([name, mediaType]) => {
    return { key: `${section}.${name}`, mediaType, path: paths[name] ?? '' }
  })
  const custom = configuration[rows].map(({ content_type, class: path }, row) => {
    return { key: `${rows}[${row}].class`, mediaType: mediaTypeOf(content_type), path }
  })
  return [...named, ...custom].filter(({ path }) => path !== '')
}

export function formatSettings(configuration: Configuration): FormatSettings {
  const { mediation } = configuration
  const modules = modulesOf(configuration, '')
  const ofCalls = modulesOf(configuration, 'blocking.')
  return {
    limits: {
      depth: mediation['body.max_depth'],
      items: mediation['body.max_items'],
      nameLength: mediation['body.max_name_length'],
      textLength: mediation['body.max_text_length'],
      decodedSize: mediation['body.max_decoded_size'],
      codingRatio: mediation['body.max_coding_ratio'],
    },
    conversion: {
      keepsNamespaces: mediation['synapse.preserve_namespace_on_xml_to_json'],
      writesDeclarations: mediation['synapse.enable_namespace_declaration'],
      usesNil: mediation['synapse.enable_xml_nil'],
      autoPrimitive: mediation['synapse.enable_auto_primitive'],
      autoArray: mediation['synapse.json_out_auto_array'],
      escapesNames: mediation['synapse.build_valid_nc_name'],
      staysText: mediation['synapse.disable_auto_primitive_regex'],
      removedFromText: mediation['synapse.disable_custom_replace_regex'],
    },
    pieceSize: mediation['synapse.temp_data_chunk_size'],
    ...modules,
    ofBlockingCalls: isEmpty(ofCalls) ? null : merged(modules, ofCalls),
  }
}

function modulesOf(configuration: Configuration, of: '' | 'blocking.'): FormatModules {
  const paths = (side: 'builders' | 'formatters') =>
    Object.fromEntries(namedFormats(configuration, side, of).map(({ mediaType, path }) => [mediaType, path]))
  return { builders: paths('builders'), formatters: paths('formatters') }
}

function merged(all: FormatModules, own: FormatModules): FormatModules {
  return {
    builders: { ...all.builders, ...own.builders },
    formatters: { ...all.formatters, ...own.formatters },
  }
}

/** No modules are named. */
export function isEmpty({ builders, formatters }: FormatModules): boolean {
  return Object.keys(builders).length + Object.keys(formatters).length === 0
}
