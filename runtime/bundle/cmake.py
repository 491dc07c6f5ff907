"""The CMake file of a bundle: a library of its C, and of its Fortran module."""

from __future__ import annotations


def cmake_lists(name: str) -> str:
    """The text of the file: a target `NAME_bundle`, and `NAME_fortran` in Fortran projects."""
    return f"""\
# Made by timetile. Link {name}_bundle, or {name}_fortran from Fortran; load the kernels from the
# folder {name.upper()}_FOLDER, which is defined where a target links.
cmake_minimum_required(VERSION 3.18)
project({name}_bundle LANGUAGES C)

if(NOT TARGET CUDA::cuda_driver)
  find_package(CUDAToolkit REQUIRED)
endif()

add_library({name}_bundle STATIC {name}.c)
target_include_directories({name}_bundle PUBLIC "${{CMAKE_CURRENT_SOURCE_DIR}}")
target_compile_definitions({name}_bundle
  INTERFACE {name.upper()}_FOLDER="${{CMAKE_CURRENT_SOURCE_DIR}}")
target_link_libraries({name}_bundle PUBLIC CUDA::cuda_driver)
if(UNIX)
  target_link_libraries({name}_bundle PUBLIC m)
endif()

get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if("Fortran" IN_LIST languages)
  add_library({name}_fortran STATIC {name}.f90)
  set_target_properties({name}_fortran PROPERTIES
    Fortran_MODULE_DIRECTORY "${{CMAKE_CURRENT_BINARY_DIR}}")
  target_include_directories({name}_fortran PUBLIC "${{CMAKE_CURRENT_BINARY_DIR}}")
  target_link_libraries({name}_fortran PUBLIC {name}_bundle)
endif()
"""
