import { Layer, type DefaultProps, type LayerProps, type UpdateParameters } from "@deck.gl/core";
import { Model } from "@luma.gl/engine";

// A layer of GL points. ScatterplotLayer draws instanced squares with features for globes,
// which takes a software renderer about a second for 100,000 points.

const block = `layout(std140) uniform pointsUniforms {
  mat4 camera;
  float size;
} points;
`;
const frame = { name: "points", vs: block, fs: block, uniformTypes: { camera: "mat4x4<f32>", size: "f32" } } as const;

const vs = `#version 300 es
#define SHADER_NAME points-vertex
in vec2 positions;
in vec4 colours;
out vec4 tint;
void main(void) {
  gl_Position = points.camera * vec4(positions, 0.0, 1.0);
  gl_PointSize = points.size;
  tint = colours;
}
`;

const fs = `#version 300 es
#define SHADER_NAME points-fragment
precision highp float;
in vec4 tint;
out vec4 fragColor;
void main(void) {
  float away = 2.0 * length(gl_PointCoord - vec2(0.5)); // 1 at the edge of the circle
  float cover = clamp((1.0 - away) * 0.5 * points.size, 0.0, 1.0);
  if (cover == 0.0) discard;
  fragColor = vec4(tint.rgb, tint.a * cover);
}
`;

interface Props {
  size: number; // diameter in pixels
}

const defaults: DefaultProps<Props> = { size: 4 };

export class Points extends Layer<Required<Props>> {
  static override layerName = "Points";
  static override defaultProps = defaults;
  declare state: { model?: Model };

  override getShaders() {
    return super.getShaders({ vs, fs, modules: [frame] });
  }

  override initializeState() {
    this.getAttributeManager()?.remove(["instancePickingColors"]); // picking uses the grid index
    this.getAttributeManager()?.add({
      positions: { size: 2, type: "float32", accessor: "getPosition" },
      colours: { size: 4, type: "unorm8", accessor: "getFillColor" },
    });
  }

  override updateState(params: UpdateParameters<this>) {
    super.updateState(params);
    if (this.state.model) return;
    this.state.model = new Model(this.context.device, {
      ...this.getShaders(),
      id: this.props.id,
      topology: "point-list",
      bufferLayout: this.getAttributeManager()?.getBufferLayouts() ?? [],
    });
    this.getAttributeManager()?.invalidateAll();
  }

  override draw() {
    const model = this.state.model;
    if (!model) return;
    model.setVertexCount(this.getNumInstances());
    const ratio = this.context.device.getDefaultCanvasContext().cssToDeviceRatio();
    const camera = this.context.viewport.viewProjectionMatrix;
    model.shaderInputs.setProps({ points: { camera, size: this.props.size * ratio } });
    model.draw(this.context.renderPass);
  }
}

/** A layer of points from packed x, y, … and r, g, b, a, … arrays. */
export function points(xy: Float32Array, colours: Uint8Array, size: number): Points {
  const attributes = {
    getPosition: { value: xy, size: 2 },
    getFillColor: { value: colours, size: 4, normalized: true },
  };
  return new Points({ id: "points", data: { length: xy.length / 2, attributes }, size } as LayerProps & Props);
}
