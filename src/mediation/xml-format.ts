/** Elements of a sequence file as trees of their own: what a format or a value is. For the primary. */
import type { XmlElement } from '../config/xml.ts'
import { closed, element, type XmlElementNode } from './xml-tree.ts'

export const SEQUENCE_NAMESPACE = 'http://ws.apache.org/ns/synapse'

/**
 * With the namespaces that it uses. The default namespace of the sequence file is not one of them: authors who leave
 * xmlns="" out mean elements without a namespace.
 */
export function treeOfElement(root: XmlElement): XmlElementNode {
  return closed(plainTree(root), prefix => {
    const namespace = root.namespaceOf(prefix)
    return prefix === '' && namespace === SEQUENCE_NAMESPACE ? undefined : namespace
  })
}

function plainTree(node: XmlElement): XmlElementNode {
  const attributes = [...node.declarations, ...node.attributes].map(({ name, value }) => [name, value] as const)
  const hasElements = node.children.length > 0
  const children = node.nodes
    // Space between elements is how the file is laid out.
    .filter(child => typeof child !== 'string' || !hasElements || child.trim() !== '')
    .map(child => (typeof child === 'string' ? child : plainTree(child)))
  return element(node.qualifiedName, children, attributes)
}
